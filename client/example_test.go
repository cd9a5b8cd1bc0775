package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"hongbao/client"
	"hongbao/wire"
)

// From a key to the first grab.
func Example() {
	c, err := client.New(os.Getenv("HONGBAO_URL"), os.Getenv("HONGBAO_APP_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	packet, err := c.CreateAndWait(ctx, wire.CreatePacket{
		SenderID:    "alice",
		TotalAmount: 10_000, // fen
		ShareCount:  10,
		Greeting:    "恭喜发财",
	}, client.Key("order-4711")) // of your own books: asking again makes no second packet
	if err != nil {
		log.Fatal(err)
	}
	claim, err := c.Grab(ctx, packet.ID, wire.Grab{UserID: "bob", Nickname: "Bob"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("bob won ¥%v\n", claim.Amount)
}

// The message for a user after a grab.
func ExampleClient_Grab() {
	c, err := client.New(os.Getenv("HONGBAO_URL"), os.Getenv("HONGBAO_APP_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	claim, err := c.Grab(context.Background(), "97h0uojo11oljc4bchnk", wire.Grab{UserID: "bob"})
	var problem *client.Problem
	switch {
	case err == nil && claim.Replayed:
		fmt.Printf("You have ¥%v of this packet already.\n", claim.Amount)
	case err == nil:
		fmt.Printf("You won ¥%v!\n", claim.Amount)
	case client.IsCode(err, wire.CodeSoldOut, wire.CodeExpired):
		fmt.Println("Too late.")
	case client.IsCode(err, wire.CodeNotOpenYet) && errors.As(err, &problem) && problem.OpensAt != nil:
		fmt.Printf("Opens at %v.\n", problem.OpensAt.Local())
	default:
		fmt.Println("Please try again.") // and ask again: nothing was taken, or the claim is there
		log.Print(err)
	}
}

// A create that survives the death of its process: the key is stored first.
func ExampleClient_Create() {
	c, err := client.New(os.Getenv("HONGBAO_URL"), os.Getenv("HONGBAO_APP_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	request, key := wire.CreatePacket{SenderID: "alice", TotalAmount: 888, ShareCount: 3}, client.Key("order-4711")
	// ... store the request and its key in your database, then:
	packet, err := c.Create(context.Background(), request, key)
	var problem *client.Problem
	switch {
	case client.IsCode(err, wire.CodeFundingDeclined) && errors.As(err, &problem) && problem.Failure != nil:
		fmt.Println("Not charged:", problem.Failure.Message)
	case errors.As(err, &problem) && problem.Status < 500 && problem.Code != wire.CodeRequestInProgress:
		fmt.Println("Refused:", problem.Code, problem.RequestID)
	case err != nil: // no answer, or one that does not say whether the packet was made
		fmt.Println("Not known yet; Create again with the same request and key, after a restart too.")
	case packet.Status == wire.PacketFunding:
		fmt.Println("The charge takes a little longer; ask for packet", packet.ID)
	default:
		fmt.Println("Packet", packet.ID, "is", packet.Status)
	}
}

// A packet every evening of a month. Each is found by the day on which it opens.
func ExampleClient_CreateCampaign() {
	c, err := client.New(os.Getenv("HONGBAO_URL"), os.Getenv("HONGBAO_APP_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	campaign, err := c.CreateCampaign(ctx, wire.CreateCampaign{
		Name:         "evening rain",
		TimeZone:     "Asia/Shanghai",
		OpensDailyAt: "20:00",
		StartsOn:     "2027-02-01",
		EndsOn:       "2027-02-28",
		Packet:       wire.CampaignCreate{SenderID: "alice", TotalAmount: 10_000, ShareCount: 10}, // fen, of each packet
	}, client.Key("rain-2027-02")) // of your own books: asking again makes no second campaign
	if err != nil {
		log.Fatal(err)
	}
	for day, err := range c.CampaignDays(ctx, campaign.ID) {
		if err != nil {
			log.Fatal(err)
		}
		if day.PacketID != nil { // nil: missed
			fmt.Println(day.Day, "packet", *day.PacketID)
		}
	}
}

// Pages are fetched as they are needed.
func ExampleClient_Grabs() {
	c, err := client.New(os.Getenv("HONGBAO_URL"), os.Getenv("HONGBAO_APP_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	for claim, err := range c.Grabs(context.Background(), "97h0uojo11oljc4bchnk") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s ¥%v %s\n", claim.UserID, claim.Amount, claim.Payout.Status)
	}
}

// Failed payouts and a decision to pay again.
func ExampleStaff_Payouts() {
	s, err := client.NewStaff(os.Getenv("HONGBAO_STAFF_URL"), os.Getenv("HONGBAO_FINANCE_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	hour := int64(3600)
	failed := wire.PayoutFilter{PaymentFilter: wire.PaymentFilter{Status: wire.PayoutFailed, OlderThanSeconds: &hour}}
	for payout, err := range s.Payouts(ctx, failed) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(payout.ID, payout.Failure.Code, payout.Failure.NextAction)
		if payout.Failure.Code != "account_frozen" {
			continue
		}
		decided, err := s.RetryPayout(ctx, payout.ID, wire.Retry{Reason: "account unfrozen, ticket 4711"})
		if err != nil {
			log.Fatal(err)
		}
		if decided.Approval != nil {
			fmt.Println("a second person has to agree until", decided.Approval.ExpiresAt)
		}
	}
}

func ExampleIsCode() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprint(w, `{"code":"sold_out","detail":"All shares of the packet are claimed.","status":409}`)
	}))
	defer server.Close()
	c, err := client.New(server.URL, "key")
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Grab(context.Background(), "97h0uojo11oljc4bchnk", wire.Grab{UserID: "carol"})
	fmt.Println(client.IsCode(err, wire.CodeSoldOut))
	fmt.Println(err)
	// Output:
	// true
	// POST /v1/packets/97h0uojo11oljc4bchnk/grabs: sold_out: All shares of the packet are claimed.
}
