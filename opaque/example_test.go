package opaque_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memkv"
)

func Example() {
	ctx := context.Background()
	kv := memkv.New(memkv.Options{}) // or memcachekv.New(addr), rediskv.New(rdb)
	accounts, err := opaque.Open(ctx, kv, Accounts)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = accounts.Create(ctx, Account{ID: "a1", Status: "active", Email: "ann@x.org"})
	_ = accounts.Create(ctx, Account{ID: "a2", Status: "active"})

	err = accounts.Create(ctx, Account{ID: "a3", Email: "Ann@X.org"})
	var conflict *index.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println(conflict.Index, "is taken by", conflict.Holder)
	}
	_, _ = accounts.Update(ctx, "a1", func(a *Account) error {
		a.Status = "suspended"
		return nil
	})
	for a, err := range accounts.Find(ctx, ByStatus.Is("suspended")) {
		fmt.Println(a.ID, a.Status, err)
	}
	owner, err := accounts.One(ctx, ByEmail.Is("ann@x.org"))
	fmt.Println(owner.ID, err)
	report, err := accounts.Verify(ctx, opaque.RunOptions{})
	fmt.Println(report.Records, report.Clean(), err)
	// Output:
	// email is taken by a1
	// a1 suspended <nil>
	// a1 <nil>
	// 2 true <nil>
}
