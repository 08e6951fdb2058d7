// Package proof holds the tests that would catch the library lying: random programs against a model, every request of a
// program cut before and after the server ran it, histories of concurrent callers under faults, servers killed and failed
// over under load, and each safeguard of the write path taken out to see that something notices. It holds no code.
//
// go test runs the short form; make soak runs all of it for SOAK_MINUTES. A failure prints the seed with which PROOF_SEED
// repeats it.
package proof
