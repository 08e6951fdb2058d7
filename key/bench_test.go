package key_test

import (
	"testing"

	"github.com/lockstep-go/lockstep/key"
)

func BenchmarkRecord(b *testing.B) {
	p := partition(b, space(b, key.Redis), key.Single("account"))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = p.Record("user:4711")
	}
}

func BenchmarkEntryBody(b *testing.B) {
	s := space(b, key.Redis)
	v := key.Text("suspended")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.EntryBody("status", 1, v)
	}
}

func BenchmarkEntry(b *testing.B) {
	p := partition(b, space(b, key.Redis), key.Single("account"))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = p.Entry("status.1:suspended")
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = key.Parse("acme:billing:account:{account.17.hNU}:~status.1:suspended:v2")
	}
}
