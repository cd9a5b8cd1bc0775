package wire

// AuthorizationStatus is how far a recipient's agreement to be paid without confirming is.
type AuthorizationStatus string

// The statuses of agreements.
const (
	AuthorizationNone    AuthorizationStatus = "none"
	AuthorizationPending AuthorizationStatus = "pending"
	AuthorizationActive  AuthorizationStatus = "active"
	AuthorizationClosed  AuthorizationStatus = "closed"
)

// AuthorizationOf names the account of a recipient at a provider.
type AuthorizationOf struct {
	Provider string `json:"provider,omitempty" check:"provider" doc:"One whose payouts.authorizations is true; by default the one that pays the recipients of new packets." example:"wechat"`
	Account  string `json:"account,omitempty" minLength:"1" maxLength:"64" check:"id" doc:"The recipient's account there, such as an openid; by default the user id." example:"o-MYE42l80oelYMDE34nYD456Xoy"`
}

// Authorization is a recipient's agreement with a provider to be paid without confirming each time.
type Authorization struct {
	UserID        string              `json:"user_id" doc:"The recipient." example:"u2"`
	Provider      string              `json:"provider" doc:"The provider that keeps the agreement." example:"wechat"`
	Account       string              `json:"account" doc:"The recipient's account there." example:"o-MYE42l80oelYMDE34nYD456Xoy"`
	Authorization *string             `json:"authorization" doc:"Its number: give it as recipient.authorization of grabs while it is active. null: none."`
	Status        AuthorizationStatus `json:"status" doc:"none: not requested. pending: the recipient has to accept it with confirm. active: payouts that name it need no confirmation. closed: not accepted in time, or ended by the recipient or the provider; a POST requests another one."`
	Reason        *string             `json:"reason" doc:"The provider's reason, of a closed one; null otherwise."`
	Confirm       *Confirm            `json:"confirm" doc:"What the recipient's app needs in order to accept a pending one. It works like a bearer key: give it to the recipient only. null otherwise."`
}
