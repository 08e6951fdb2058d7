package redistest

// Full is how many a test without goroutines of its own tries: full, or fewer
// under the race detector, which sees nothing there and makes it ten times
// slower. make test runs such tests both ways.
func Full(full, race int) int {
	if Race {
		return race
	}
	return full
}

// Size is how much a test gives the server: fewer where it runs inside the
// test process, and is slow.
func (s *Server) Size(real, mini int) int {
	if s.Name == NameMini {
		return mini
	}
	return real
}
