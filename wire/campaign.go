package wire

import (
	"hongbao/internal/money"
)

// CampaignStatus is the status of a campaign.
type CampaignStatus string

// The statuses of campaigns.
const (
	CampaignActive CampaignStatus = "active" // a packet is created every day
	CampaignPaused CampaignStatus = "paused" // no packets are created
	CampaignEnded  CampaignStatus = "ended"  // final
)

// CampaignDayStatus is the outcome of one day of a campaign.
type CampaignDayStatus string

// The outcomes of a day. Days during a pause have none.
const (
	CampaignDayMaking CampaignDayStatus = "making" // the packet is being created, also when the campaign is paused or ended by then
	CampaignDayMade   CampaignDayStatus = "made"   // the packet was created; GET of the packet returns whether its sender was charged
	CampaignDayMissed CampaignDayStatus = "missed" // no packet could be created before it would have expired
)

// CreateCampaign is the body of a create, used for the OpenAPI document.
type CreateCampaign struct {
	Name         string         `json:"name" minLength:"1" maxLength:"64" doc:"A name for people: 1 to 64 characters, no control characters." example:"evening rain"`
	TimeZone     string         `json:"time_zone,omitempty" doc:"IANA name; Asia/Shanghai by default." example:"Asia/Shanghai" nullable:"true"`
	OpensDailyAt string         `json:"opens_daily_at" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" doc:"The local time at which packets open." example:"20:00"`
	StartsOn     Date           `json:"starts_on,omitempty" doc:"The first day; by default the first day whose opening time is in the future. Earlier days are skipped."`
	EndsOn       Date           `json:"ends_on,omitempty" doc:"The last day; null: the campaign runs until it is ended."`
	OneWin       bool           `json:"one_win_per_user,omitempty" doc:"true: a user wins in at most one of its packets; further grabs of a winner are answered 403 not_eligible. false by default. It cannot be changed later." nullable:"true"`
	Packet       CampaignCreate `json:"packet" doc:"The template of the daily packet."`
}

// CampaignCreate is the template in a request: CreatePacket without opens_at.
type CampaignCreate struct {
	SenderID         string            `json:"sender_id" doc:"The user who is charged for each packet: 1 to 64 bytes of UTF-8 without control characters." example:"u1" minLength:"1" maxLength:"64"`
	TotalAmount      money.Fen         `json:"total_amount" doc:"The amount of each packet, in fen." example:"10000" fen:"positive"`
	ShareCount       int               `json:"share_count" minimum:"1" maximum:"1000000" example:"10" doc:"The number of shares of each packet."`
	Split            Split             `json:"split,omitempty" doc:"How packets are split; random by default." orNull:"true"`
	MinShare         money.Fen         `json:"min_share,omitempty" doc:"The smallest share in fen, 1 by default." fen:"positive" orNull:"true"`
	MaxShare         money.Fen         `json:"max_share,omitempty" doc:"The largest share in fen; null: no limit." fen:"positive" orNull:"true"`
	Currency         string            `json:"currency,omitempty" doc:"Always CNY, the default." nullable:"true"`
	Greeting         string            `json:"greeting,omitempty" maxLength:"64" doc:"At most 64 characters, no control characters." nullable:"true"`
	ExpiresInSeconds int               `json:"expires_in_seconds,omitempty" minimum:"10" maximum:"604800" doc:"How long each packet can be grabbed after it opens, in seconds; 86400 by default." nullable:"true"`
	EligibleUserIDs  []string          `json:"eligible_user_ids,omitempty" nullable:"true" minItems:"1" maxItems:"10000" doc:"The users who may grab, without duplicates; null: every user."`
	Tickets          bool              `json:"tickets,omitempty" doc:"true: a grab needs a ticket that your app signed for the packet of the day. Not together with eligible_user_ids; false by default." nullable:"true"`
	Funding          *CampaignFunding  `json:"funding,omitempty" doc:"How each packet is paid for; null: its sender is charged." orNull:"true"`
	GroupID          string            `json:"group_id,omitempty" minLength:"1" maxLength:"64" doc:"A value of the client, returned unchanged: 1 to 64 bytes." nullable:"true"`
	Metadata         map[string]string `json:"metadata,omitempty" doc:"Values of the client, returned unchanged: strings, at most 2048 bytes of UTF-8 in all values and as many in all names." orNull:"true"`
}

// CampaignFilter selects campaigns; zero members select all.
type CampaignFilter struct {
	Status CampaignStatus `json:"status,omitempty" doc:"Campaigns in this status." example:"active"`
}

// StaffCampaignFilter selects campaigns of all apps; zero members select all.
type StaffCampaignFilter struct {
	Status CampaignStatus `json:"status,omitempty" doc:"Campaigns in this status." example:"active"`
	App    string         `json:"app,omitempty" check:"text" doc:"Campaigns of this app." example:"shop"`
}

// Campaign is a campaign in answers.
type Campaign struct {
	ID           string           `json:"id" doc:"Opaque; not guessable." example:"3q5k9v0c1m7e2u8h4r6t"`
	Name         string           `json:"name" doc:"As in the request."`
	Status       CampaignStatus   `json:"status" doc:"active: a packet is created every day. paused: no packets are created. ended: final. Existing packets are independent of the status."`
	TimeZone     string           `json:"time_zone" doc:"The time zone of its days and times." example:"Asia/Shanghai"`
	OpensDailyAt string           `json:"opens_daily_at" doc:"The local time at which packets open." example:"20:00"`
	StartsOn     Date             `json:"starts_on" doc:"The first day."`
	EndsOn       *Date            `json:"ends_on" doc:"The last day; null: no end."`
	NextOpensAt  *Time            `json:"next_opens_at" doc:"When the next packet opens. It is created, and its sender charged, ten minutes before; null: there is none."`
	OneWin       bool             `json:"one_win_per_user" doc:"true: a user wins in at most one of its packets."`
	Packet       CampaignTemplate `json:"packet" doc:"The template of the daily packet."`
	CreatedAt    Time             `json:"created_at" doc:"When it was created."`
	EndedAt      *Time            `json:"ended_at" doc:"When it ended; null before."`
	Schedule     ScheduleRef      `json:"schedule" doc:"The Temporal schedule that creates its packets."`
}

// ScheduleRef refers to a Temporal schedule.
type ScheduleRef struct {
	ID string `json:"id" doc:"The schedule id." example:"campaign/3q5k9v0c1m7e2u8h4r6t"`
}

// CampaignTemplate is the template of the packets of a campaign, with defaults filled in.
type CampaignTemplate struct {
	SenderID         string            `json:"sender_id" doc:"The user who is charged for each packet." example:"u1"`
	Currency         string            `json:"currency" enum:"CNY" doc:"Amounts are in fen, the minor unit of CNY."`
	TotalAmount      money.Fen         `json:"total_amount" doc:"The amount of each packet." example:"10000"`
	ShareCount       int               `json:"share_count" minimum:"1" maximum:"1000000" doc:"The number of shares of each packet." example:"10"`
	Split            Split             `json:"split" doc:"How packets are split; see docs/fairness.md."`
	MinShare         money.Fen         `json:"min_share" doc:"The smallest share in fen." example:"1"`
	MaxShare         *money.Fen        `json:"max_share" doc:"The largest share in fen; null: no limit."`
	Greeting         string            `json:"greeting" doc:"As in the request."`
	ExpiresInSeconds int64             `json:"expires_in_seconds" doc:"How long each packet can be grabbed after it opens, in seconds." example:"86400"`
	EligibleCount    int               `json:"eligible_count" minimum:"0" doc:"How many users may grab; 0: every user."`
	Tickets          bool              `json:"tickets" doc:"true: a grab needs a ticket that the app signed."`
	Funding          CampaignFunding   `json:"funding" doc:"How each packet is paid for."`
	GroupID          *string           `json:"group_id" doc:"As in the request."`
	Metadata         map[string]string `json:"metadata" doc:"As in the request."`
}

// CampaignFunding is how the packets of a campaign are paid for: nobody has to act.
type CampaignFunding struct {
	Source FundingSource `json:"source" doc:"sender: the sender is charged. merchant: the app's balance pays, and takes the remainder back."`
}

// CampaignDay is the outcome of one day.
type CampaignDay struct {
	Day       Date              `json:"day" doc:"The day in the time zone of the campaign."`
	Status    CampaignDayStatus `json:"status" doc:"making: the packet is being created, also when the campaign is paused or ended by then. made: the packet exists; read it for its status. missed: the packet could not be created before it would have expired."`
	PacketID  *string           `json:"packet_id" doc:"The packet; null unless the status is made."`
	OpensAt   Time              `json:"opens_at" doc:"When the packet opens, or would have opened."`
	DecidedAt Time              `json:"decided_at" doc:"When the packet was created or missed; while making, when the creation began."`
}

// StaffCampaign is a campaign in answers to staff.
type StaffCampaign struct {
	Campaign
	App string `json:"app" doc:"The app that created it." example:"shop"`
}

// CampaignDecision is the body of a pause or an end by staff.
type CampaignDecision struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"the sender has left, ticket 4711"`
}
