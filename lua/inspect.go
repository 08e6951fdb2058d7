package lua

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Question asks whether a member is in an index key.
type Question struct {
	Key    string
	Scored bool // a ZSET
	Member string
	Floor  string // body of the entry whose floor is asked for, "" for none
}

// InspectRecord is one record with what is asked about it.
type InspectRecord struct {
	Key, ID   string
	Questions []Question
}

// InspectCall asks about some records of one partition. A few hundred questions hold up nobody.
type InspectCall struct {
	Manifest, Expiry, Floor string
	Records                 []InspectRecord
}

// Membership is the answer to a question.
type Membership struct {
	Member  bool
	Score   string // of a member of a ZSET, as the server writes it
	Foreign string // the type of the key where it is another one, else ""
	Floor   Floor
}

// Inspected is one record with its answers, as they were at one instant.
type Inspected struct {
	Type    string // of its key; "none" without one
	Value   string
	Row     string
	HasRow  bool
	Due     bool // the record's noted lifetime has ended
	Answers []Membership
}

// Inspect looks at records, their rows and some of their entries at one instant. The answers are aligned with the call;
// the time is the server's clock. It writes nothing. Errors: *KeyTypeError.
func (r *Runner) Inspect(ctx context.Context, c InspectCall) ([]Inspected, time.Time, error) {
	const fixedKeys = 3
	keys := make([]string, 0, fixedKeys+2*len(c.Records))
	keys = append(keys, c.Manifest, c.Expiry, c.Floor)
	for i := range c.Records {
		keys = append(keys, c.Records[i].Key)
	}
	args := []any{len(c.Records)}
	places := map[string]int{}
	for i := range c.Records {
		rec := &c.Records[i]
		args = append(args, rec.ID, len(rec.Questions))
		for _, q := range rec.Questions {
			place, ok := places[q.Key]
			if !ok {
				keys = append(keys, q.Key)
				place = len(keys)
				places[q.Key] = place
			}
			kind := "s"
			if q.Scored {
				kind = "z"
			}
			args = append(args, kind, place, q.Member, q.Floor)
		}
	}
	list, err := r.run(ctx, inspectScript, keys, fixed(args))
	if err != nil {
		return nil, time.Time{}, err
	}
	rep := reply{inspectScript.name, list, keys}
	if err := rep.refusal(0); err != nil {
		return nil, time.Time{}, err
	}
	now := time.UnixMicro(rep.number(1))
	if len(list) != 2+len(c.Records) {
		return nil, now, rep.unexpected()
	}
	out := make([]Inspected, len(c.Records))
	for i := range c.Records {
		fields, ok := list[2+i].([]any)
		if !ok || len(fields) != 4+2*len(c.Records[i].Questions) {
			return nil, now, rep.unexpected()
		}
		out[i] = inspected(reply{rep.script, fields, nil}, c.Records[i].Questions, now)
	}
	return out, now, nil
}

// inspected reads the answer about one record.
func inspected(r reply, questions []Question, now time.Time) Inspected {
	rec := Inspected{Type: r.text(0), Value: r.text(1), Answers: make([]Membership, len(questions))}
	rec.Row, rec.HasRow = r.optional(2)
	if due, noted := r.optional(3); noted {
		at, _ := strconv.ParseFloat(due, 64) // a score, as the server writes it
		rec.Due = !time.UnixMilli(int64(at)).After(now)
	}
	for i, q := range questions {
		a := &rec.Answers[i]
		got := r.text(4 + 2*i)
		if foreign, ok := strings.CutPrefix(got, "!"); ok {
			a.Foreign = foreign
		} else if got != "" {
			a.Member = true
			if q.Scored {
				a.Score = got
			}
		}
		if raw := r.text(5 + 2*i); raw != "" {
			a.Floor = ParseFloor(raw)
		}
	}
	return rec
}
