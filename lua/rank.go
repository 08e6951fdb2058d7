package lua

import "context"

// RankCall asks for one page of a ranked key.
type RankCall struct {
	Meta, Expiry, Floor, Entries string
	State                        string // state field of the index
	Body                         string // of the entry: its field in the floor hash
	Lexical                      bool
	Descending                   bool
	Limit                        int
	Min, Max                     string // as ZCOUNT, or for lexical keys ZLEXCOUNT, takes them
	AfterScore, AfterMember      string // the pair after which the page begins, both "" at the start
	MaxAge, Unit                 int64  // in microseconds, 0 without
	// PrefixSize is how many bytes of a lexical member stand before the id; -1 where they end with the bytes 0 and 1.
	PrefixSize int
}

// Pair is one member of a ranked key with its score as the server writes it.
type Pair struct{ Member, Score string }

// RankReply is one page.
type RankReply struct {
	Members []string
	Last    Pair // the last of them with its score
	Floor   Floor
	Hidden  int64 // left out because their records are due
	More    bool  // members follow the page
	Size    int64 // members within the bounds, due ones included
}

// Rank reads one page in order. Errors: *StateError if the index is not ready, ErrNotEntered, *KeyTypeError.
func (r *Runner) Rank(ctx context.Context, c RankCall) (RankReply, error) {
	keys := []string{c.Meta, c.Expiry, c.Floor, c.Entries}
	kind, direction := "z", "asc"
	if c.Lexical {
		kind = "l"
	}
	if c.Descending {
		direction = "desc"
	}
	args := []any{
		c.State, c.Body, kind, direction, c.Limit, c.Min, c.Max, c.AfterScore, c.AfterMember, "", "", "",
	}
	if c.MaxAge > 0 {
		args[9], args[10] = c.MaxAge, c.Unit
	}
	if c.PrefixSize >= 0 {
		args[11] = c.PrefixSize
	}
	list, err := r.run(ctx, rankScript, keys, fixed(args))
	if err != nil {
		return RankReply{}, err
	}
	rep := reply{rankScript.name, list, keys}
	if err := rep.refusal(0); err != nil {
		return RankReply{}, err
	}
	if len(list) < 6 {
		return RankReply{}, rep.unexpected()
	}
	out := RankReply{
		Hidden: rep.number(2), More: rep.text(3) == "1", Size: rep.number(4), Members: make([]string, 0, len(list)-6),
	}
	if raw := rep.text(1); raw != "" {
		out.Floor = ParseFloor(raw)
	}
	for i := 6; i < len(list); i++ {
		out.Members = append(out.Members, rep.text(i))
	}
	if n := len(out.Members); n > 0 {
		out.Last = Pair{out.Members[n-1], rep.text(5)}
	}
	return out, nil
}
