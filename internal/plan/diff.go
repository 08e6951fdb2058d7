package plan

// Removed are the tokens of before that after does not hold. Both are sorted, as Place leaves them; a row keeps that
// order.
func Removed(before []Token, after []Placed) []Token {
	if len(before) == 0 {
		return nil
	}
	keep := make(map[Token]struct{}, len(after))
	for _, p := range after {
		keep[p.Token] = struct{}{}
	}
	var out []Token
	for _, t := range before {
		if _, ok := keep[t]; !ok {
			out = append(out, t)
		}
	}
	return out
}
