package lua

import (
	"context"
	"fmt"
	"strconv"
)

// Mode says what must be true of a record for its write to happen.
type Mode byte

// The modes of a write.
const (
	Put     Mode = 'P' // whatever is there
	Create  Mode = 'C' // no record
	Replace Mode = 'R' // a record
	Delete  Mode = 'D' // removes the record and its entries
	Collect Mode = 'X' // removes the entries of a record that is gone
	Fix     Mode = 'F' // writes the entries of a record again, not the record
)

// OpCode is one change of one index key.
type OpCode byte

// The operations on index keys.
const (
	Add          OpCode = '+' // SET: the id becomes a member
	AddUnique    OpCode = 'u' // SET: the id becomes the only member, or the record is not written
	Remove       OpCode = '-' // SET: the id stops being a member
	AddScored    OpCode = 'z' // ZSET: the id becomes a member with Arg as its score
	AddLexical   OpCode = 'l' // ZSET: Arg and the id become a member with score 0
	RemoveRanked OpCode = 'y' // ZSET: Arg and the id stop being a member; Arg is "" for scored ones
)

// Op is one operation of a record. Key is its place in ApplyCall.Entries.
type Op struct {
	Code OpCode
	Key  int
	Arg  string
}

// Trim is the bound of a ranked key, kept on every write that adds to it. Key is its place in ApplyCall.Entries. Where
// entries are only removed Keep is 0: what goes leaves the floor of the key too.
type Trim struct {
	Key    int
	Body   string // of the entry: its field in the floor hash
	Low    bool   // the lowest are kept
	Keep   int    // 0 keeps all
	Slack  int
	MaxAge int64 // in microseconds, 0 without
	Unit   int64 // of the scores, in microseconds
}

// Lifetimes of a write that are not a number of milliseconds.
const (
	Forever = "f" // no expiry, and none is left from before
	Keep    = "k" // the expiry stays as it is
)

// ApplyRecord is the plan for one record.
type ApplyRecord struct {
	Key       string // its primary key
	ID        string
	WriteID   string // 8 bytes, fresh for the caller's call
	Mode      Mode
	Condition string // "", or from IfWriteID, IfBytes, IfValue or IfUnmoved
	Assumed   string // entries as in a row: what the plan believes was written
	Entries   string // entries as in a row: what the plan writes
	Value     []byte // must not change any more: a call that its context ends may still be on its way
	Lifetime  string // Forever, Keep, or milliseconds
	Ops       []Op
}

// IfWriteID is the condition that the record's last write is the one named.
func IfWriteID(writeID string) string { return "w" + writeID }

// IfBytes is the condition that the record's last write is the one named, and that the stored bytes have this SHA-1, in hex.
func IfBytes(sha1, writeID string) string { return "b" + sha1 + writeID }

// IfUnmoved is the condition of a fix: the stored bytes have this SHA-1, in hex, and the row is the one given, "" for none.
func IfUnmoved(sha1, row string) string { return "f" + sha1 + row }

// IfValue is the condition that the record has no row and its stored bytes have this SHA-1, in hex.
func IfValue(sha1 string) string { return "v" + sha1 }

// ApplyCall is one batch of records of one partition, each id at most once, at most MaxBatch of them.
type ApplyCall struct {
	Meta, Manifest, Expiry, Floor string
	Generation                    int64
	Epoch                         string // of the partition, from Enter
	Seen                          int64  // the partition's write counter as last seen before this call
	Records                       []ApplyRecord
	Entries                       []string // index keys that the operations name
	Trims                         []Trim
	Fence                         string // of the builder that writes, "" for anybody else
	WantDue                       int    // how many records that are due the reply may name, at most 1000
}

// MaxBatch is the largest number of records in one call: more would hold up the server's other clients.
const MaxBatch = 500

// StatusCode is what became of one record.
type StatusCode string

// What becomes of a record. Only Written and Repeated have changed the store.
const (
	Written      StatusCode = "written"
	Repeated     StatusCode = "repeated" // an earlier attempt of the same call wrote it
	Replan       StatusCode = "replan"   // Row: the entries differ from those assumed
	Adopt        StatusCode = "adopt"    // Value: the row is lost
	Exists       StatusCode = "exists"
	Missing      StatusCode = "missing"
	Alive        StatusCode = "alive"
	Changed      StatusCode = "changed" // Value, Row: the condition does not hold for them
	Taken        StatusCode = "taken"   // Key, Holder, Row: another id holds the unique value at that key
	WrongType    StatusCode = "type"    // Key, Found
	UnknownState StatusCode = "unknown"
)

// Status is what became of one record, with what the caller needs to plan again.
type Status struct {
	Code   StatusCode
	Row    string
	Value  string
	Key    string
	Found  string
	Holder string
}

// ApplyReply is the outcome of a batch.
type ApplyReply struct {
	Seq      int64 // the partition's write counter after the call
	Statuses []Status
	Due      []DueRecord // a few records that are due and wait for their collection
}

// DueRecord is a record whose lifetime is over, with the row of what was written for it, "" if there is none.
type DueRecord struct{ ID, Row string }

// At is a lifetime that ends at an instant, in milliseconds since 1970. A past one makes the write a delete.
func At(ms int64) string { return "a" + strconv.FormatInt(ms, 10) }

// ErrNotEntered reports a partition that has no meta or has not seen the caller's generation. Nothing was written.
var ErrNotEntered = fmt.Errorf("lockstep: the partition does not know the declaration yet")

// Apply writes a batch: one round trip, all of a record or nothing of it. A call whose reply was lost is repeated with the
// same write ids; what cannot be decided comes back as UnknownState for a record or ErrUnknown for the call. Errors:
// *KeyTypeError, *SchemaError, ErrNotEntered, ErrOutOfMemory, ErrReadOnly, ErrDenied, ErrUnavailable.
func (r *Runner) Apply(ctx context.Context, c ApplyCall) (ApplyReply, error) {
	if len(c.Records) == 0 {
		return ApplyReply{}, nil
	}
	const fixed = 4 // keys before those of the records
	keys := make([]string, 0, fixed+len(c.Records)+len(c.Entries))
	keys = append(keys, c.Meta, c.Manifest, c.Expiry, c.Floor)
	ops := 0
	for i := range c.Records {
		keys = append(keys, c.Records[i].Key)
		ops += len(c.Records[i].Ops)
	}
	keys = append(keys, c.Entries...)

	modes, conds := c.inCommon()
	each := 4
	if !modes {
		each += 2
	}
	if !conds {
		each += 2
	}
	args := make([]any, 0, 12+7*len(c.Trims)+each*len(c.Records)+2*ops+3*min(ops, 2*len(c.Entries)))
	args = append(args, strconv.FormatInt(c.Generation, 10)+" "+c.Epoch, len(c.Records), "", c.Fence, c.WantDue, len(c.Trims))
	base := fixed + len(c.Records) + 1
	for _, t := range c.Trims {
		end, age, unit := "top", any(""), any("")
		if t.Low {
			end = "low"
		}
		if t.MaxAge > 0 {
			age, unit = t.MaxAge, t.Unit
		}
		args = append(args, base+t.Key, t.Body, end, t.Keep, t.Slack, age, unit)
	}
	first := &c.Records[0]
	if modes {
		args = append(args, "1", modeNames[first.Mode], first.Lifetime)
	} else {
		args = append(args, "0", "", "")
	}
	if conds {
		args = append(args, "1", first.Condition, first.Assumed)
	} else {
		args = append(args, "0", "", "")
	}
	for i := range c.Records {
		rec := &c.Records[i]
		// Strings go by address: boxed by value each would be an allocation.
		args = append(args, &rec.ID, &rec.WriteID, &rec.Entries, rec.Value)
		if !modes {
			args = append(args, modeNames[rec.Mode], &rec.Lifetime)
		}
		if !conds {
			args = append(args, &rec.Condition, &rec.Assumed)
		}
	}
	args = appendOps(args, c, base, ops)

	sent := false
	list, err := r.run(ctx, applyScript, keys, func(resent bool) []any {
		if resent {
			sent = true
			args[2] = strconv.FormatInt(c.Seen, 10)
		}
		return args
	})
	if err != nil {
		return ApplyReply{}, err
	}
	rep := reply{applyScript.name, list, keys}
	if err := rep.refusal(c.Generation); err != nil {
		if sent {
			// What is refused now may have been applied by an earlier attempt: in an older life of the partition, or before a
			// newer declaration or builder took over.
			return ApplyReply{}, fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		return ApplyReply{}, err
	}
	out := ApplyReply{Seq: rep.number(1), Statuses: make([]Status, len(c.Records))}
	if len(list) < 2+len(c.Records) || len(list)%2 != len(c.Records)%2 {
		return ApplyReply{}, rep.unexpected()
	}
	for i := range c.Records {
		if out.Statuses[i], err = rep.status(2 + i); err != nil {
			return ApplyReply{}, err
		}
	}
	for i := 2 + len(c.Records); i < len(list); i += 2 {
		out.Due = append(out.Due, DueRecord{rep.text(i), rep.text(i + 1)})
	}
	return out, nil
}

// inCommon reports what is the same for all records: mode and lifetime, condition and assumed entries.
func (c *ApplyCall) inCommon() (modes, conds bool) {
	modes, conds = true, true
	first := &c.Records[0]
	for i := range c.Records {
		rec := &c.Records[i]
		modes = modes && rec.Mode == first.Mode && rec.Lifetime == first.Lifetime
		conds = conds && rec.Condition == first.Condition && rec.Assumed == first.Assumed
	}
	return modes, conds
}

var modeNames = map[Mode]any{Put: "P", Create: "C", Replace: "R", Delete: "D", Collect: "X", Fix: "F"}

// status reads the status of one record.
func (r reply) status(i int) (Status, error) {
	switch v := r.list[i].(type) {
	case int64:
		switch v {
		case 1:
			return Status{Code: Written}, nil
		case 2:
			return Status{Code: Repeated}, nil
		}
	case []any:
		s := reply{r.script, v, r.keys}
		st := Status{Code: StatusCode(s.text(0))}
		switch st.Code {
		case Replan:
			st.Row = s.text(1)
		case Adopt:
			st.Value = s.text(1)
		case Changed:
			st.Value, st.Row = s.text(1), s.text(2)
		case Taken:
			st.Key, st.Holder, st.Row = s.key(1), s.text(2), s.text(3)
		case WrongType:
			st.Key, st.Found = s.key(1), s.text(2)
		case Exists, Missing, Alive, UnknownState:
		default:
			return Status{}, r.unexpected()
		}
		return st, nil
	}
	return Status{}, r.unexpected()
}
