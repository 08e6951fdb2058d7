package lua

// kinds are the operations as the script knows them, in the order in which they are made on one key.
var kinds = []struct {
	code  OpCode
	arg   bool // it takes Op.Arg before the id
	short string
}{
	{Remove, false, "-"},
	{RemoveRanked, false, "y"},
	{RemoveRanked, true, "k"},
	{Add, false, "+"},
	{AddUnique, false, "u"},
	{AddScored, true, "z"},
	{AddLexical, true, "l"},
}

// kind is the place of an operation in kinds.
func (op Op) kind() int {
	switch op.Code {
	case Remove:
		return 0
	case RemoveRanked:
		if op.Arg == "" {
			return 1
		}
		return 2
	case Add:
		return 3
	case AddUnique:
		return 4
	case AddScored:
		return 5
	}
	return 6
}

// appendOps adds the operations of a call, n in all, grouped by key and kind, so that the script can pass each group on as
// it stands. base is the KEYS position of the first index key.
func appendOps(args []any, c ApplyCall, base, n int) []any {
	type step struct {
		id *string
		op *Op
	}
	ends := make([]int, len(c.Entries)*len(kinds)+1) // of each group, once it is filled
	for i := range c.Records {
		for _, op := range c.Records[i].Ops {
			ends[op.Key*len(kinds)+op.kind()+1]++
		}
	}
	for g := range len(ends) - 1 {
		ends[g+1] += ends[g]
	}
	steps := make([]step, n)
	for i := range c.Records {
		rec := &c.Records[i]
		for j := range rec.Ops {
			g := rec.Ops[j].Key*len(kinds) + rec.Ops[j].kind()
			steps[ends[g]] = step{&rec.ID, &rec.Ops[j]}
			ends[g]++
		}
	}
	from := 0
	for g, end := range ends[:len(ends)-1] {
		if from == end {
			continue
		}
		kind := kinds[g%len(kinds)]
		args = append(args, kind.short, base+g/len(kinds), end-from)
		for _, s := range steps[from:end] {
			if kind.arg {
				args = append(args, &s.op.Arg)
			}
			args = append(args, s.id)
		}
		from = end
	}
	return args
}
