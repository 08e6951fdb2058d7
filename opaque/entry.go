package opaque

// entry is one membership in an index key: the id, and the write that put it there.
type entry struct {
	id  string
	wid WriteID
}

// entrySize bounds what an entry adds to a list.
func entrySize(id string) int { return len(id) + writeIDSize + 5 }

func encodeList(entries []entry) []byte {
	size := 1
	for _, e := range entries {
		size += entrySize(e.id)
	}
	b := append(make([]byte, 0, size), formatList)
	for _, e := range entries {
		b = appendText(b, e.id)
		b = append(b, e.wid[:]...)
	}
	return b
}

func decodeList(raw []byte) ([]entry, error) {
	r := reader{b: raw}
	if r.byte() != formatList {
		return nil, foreign("a list")
	}
	var out []entry
	for len(r.b) > 0 {
		out = append(out, entry{id: r.text(), wid: r.writeID()})
	}
	if r.short {
		return nil, foreign("a list")
	}
	return out, nil
}

func encodeClaim(e entry) []byte {
	b := append(make([]byte, 0, 1+entrySize(e.id)), formatClaim)
	b = appendText(b, e.id)
	return append(b, e.wid[:]...)
}

func decodeClaim(raw []byte) (entry, error) {
	r := reader{b: raw}
	if r.byte() != formatClaim {
		return entry{}, foreign("a claim")
	}
	e := entry{id: r.text(), wid: r.writeID()}
	if r.short || len(r.b) > 0 {
		return entry{}, foreign("a claim")
	}
	return e, nil
}
