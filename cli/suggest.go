package cli

// closest gives the word of options that differs least from word, "" if none is near.
func closest(word string, options []string) string {
	best, limit := "", min(2, (len(word)+1)/2)
	for _, o := range options {
		if d := distance(word, o); d <= limit {
			best, limit = o, d-1
		}
	}
	return best
}

// didYouMean is the end of an error about a word that is not one of options.
func didYouMean(word string, options []string) string {
	if near := closest(word, options); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// distance is the number of characters to insert, drop, replace or swap with their neighbour to make a from b.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
