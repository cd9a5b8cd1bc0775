package wire

// KeyStatus is the status of a key.
type KeyStatus string

// KeyFilter selects keys; zero members select all.
type KeyFilter struct {
	Role  Role   `json:"role,omitempty" doc:"Keys of this role." example:"finance"`
	AppID string `json:"app_id,omitempty" check:"app" doc:"Keys of this app." example:"mall"`
}

// TicketKeyFilter selects ticket keys; zero members select all.
type TicketKeyFilter struct {
	AppID string `json:"app_id,omitempty" check:"app" doc:"Keys of this app." example:"mall"`
}

// APIKey is a key in answers to staff, without its secret.
type APIKey struct {
	ID         string    `json:"id" doc:"The id, which is the third part of the token." example:"k3q5v2c7m4e2"`
	Role       Role      `json:"role" doc:"The role, which decides what the key may do."`
	AppID      *string   `json:"app_id" doc:"With role app: the app whose packets the key can access."`
	Owner      string    `json:"owner" doc:"The owner: a member of staff, or the app. The audit names the owner; a person has the same owner on all keys." example:"li-na"`
	Name       *string   `json:"name" doc:"The purpose, as given by its creator."`
	Status     KeyStatus `json:"status" doc:"active: accepted. waiting: accepted after the approval of a second person. expired: its time is over. revoked: ended by a person."`
	CreatedAt  Time      `json:"created_at" doc:"When it was created."`
	LastUsedAt *Time     `json:"last_used_at" doc:"The minute of its last use; null when unknown. It is updated with a delay of seconds, and the last minute before a crash may be missing."`
	ExpiresAt  *Time     `json:"expires_at" doc:"When it expires; null: never. A rotation sets it."`
	RevokedAt  *Time     `json:"revoked_at" doc:"When it was revoked."`
	ReplacedBy *string   `json:"replaced_by" doc:"The id of the key that replaced it in a rotation."`
	MadeBy     *string   `json:"made_by" doc:"The person who created it, or rotated its predecessor; null for a command on one of our machines."`
	ApprovedBy *string   `json:"approved_by" doc:"The second person; null before the approval, and when none is needed."`
}

// CreateKey is the body of the creation of a key.
type CreateKey struct {
	Role             Role   `json:"role" doc:"The role, which decides what the key may do."`
	AppID            string `json:"app_id,omitempty" check:"app" doc:"The app whose packets the key can access; required with role app, not permitted otherwise." example:"mall"`
	Owner            string `json:"owner,omitempty" check:"owner" minLength:"1" maxLength:"64" doc:"The owner. Required for staff; by default the app's id. Approvals compare owners, ignoring case and width: use one name per person." example:"li-na"`
	Name             string `json:"name,omitempty" check:"owner" minLength:"1" maxLength:"64" doc:"The purpose." example:"checkout backend"`
	ExpiresInSeconds *int64 `json:"expires_in_seconds,omitempty" nullable:"false" minimum:"60" maximum:"316224000" doc:"Seconds until it expires; by default it never expires."`
	Reason           string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"new backend, see ticket 4711"`
}

// RotateKey is the body of a rotation.
type RotateKey struct {
	GraceSeconds     int64  `json:"grace_seconds" minimum:"0" maximum:"2592000" doc:"Seconds until the old key expires, up to 30 days. 0 revokes it at once. At least 60 for the calling key." example:"86400"`
	ExpiresInSeconds *int64 `json:"expires_in_seconds,omitempty" nullable:"false" minimum:"60" maximum:"316224000" doc:"Seconds until the new key expires; by default it never expires."`
	Reason           string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"yearly rotation"`
}

// CreatedKey is the answer to the creation of a key.
type CreatedKey struct {
	Key   APIKey  `json:"key" doc:"The key."`
	Token *string `json:"token" doc:"The bearer token. It is returned only once and not stored; null in a replayed answer."`
}

// RotatedKey is the answer to a rotation.
type RotatedKey struct {
	Key      APIKey  `json:"key" doc:"The new key."`
	Token    *string `json:"token" doc:"The bearer token. It is returned only once and not stored; null in a replayed answer."`
	Replaced APIKey  `json:"replaced" doc:"The old key, which is accepted until its expires_at."`
}

// TicketKey is a ticket key in answers to staff. All its data is public.
type TicketKey struct {
	ID        string    `json:"id" doc:"The id, which is the kid in the header of its tickets." example:"k3q5v2c7m4e2"`
	AppID     string    `json:"app_id" doc:"The app whose tickets it verifies." example:"mall"`
	Name      *string   `json:"name" doc:"The purpose, as given by its creator."`
	PublicKey string    `json:"public_key" doc:"The Ed25519 public key: its 32 bytes in base64." example:"11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="`
	Status    KeyStatus `json:"status" doc:"active: its tickets are accepted. revoked: its tickets are refused. Keys do not expire; tickets do."`
	CreatedAt Time      `json:"created_at" doc:"When it was added."`
	RevokedAt *Time     `json:"revoked_at" doc:"When it was revoked."`
}

// AddTicketKey is the body that adds a ticket key.
type AddTicketKey struct {
	AppID     string `json:"app_id" check:"app" doc:"The app that has the private key." example:"mall"`
	PublicKey string `json:"public_key" check:"ticket key" minLength:"1" maxLength:"1024" doc:"An Ed25519 public key in PEM, as 'openssl pkey -pubout' writes it." example:"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n"`
	Name      string `json:"name,omitempty" check:"owner" minLength:"1" maxLength:"64" doc:"The purpose." example:"campaign backend"`
	Reason    string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"yearly rotation"`
}
