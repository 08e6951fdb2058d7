package membership_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/membership"
)

type Order struct {
	ID, Status, Region, Number string
	Labels                     []string
	Archived                   bool
}

// orders opens orders with some indexes on a server inside the program.
func orders(ix ...index.Index[Order]) (c *index.Collection[Order], done func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	c, err = index.Open(context.Background(), rdb, index.Define("acme:shop", "order", index.Options[Order]{
		ID: func(o Order) string { return o.ID }, Version: 1, Lifetime: index.Forever, Indexes: ix,
	}))
	if err != nil {
		panic(err)
	}
	return c, func() {
		_ = rdb.Close()
		server.Close()
	}
}

// sorted collects ids: a query gives them in no order.
func sorted(ids iter.Seq2[string, error]) (out []string) {
	for id, err := range ids {
		if err != nil {
			panic(err)
		}
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func ExampleNew() {
	ctx := context.Background()
	byStatus := membership.New("status", func(o Order) string { return o.Status })
	c, done := orders(byStatus)
	defer done()

	_, _ = c.PutMany(ctx, []Order{{ID: "1", Status: "open"}, {ID: "2", Status: "open"}, {ID: "3", Status: "paid"}})
	_, _ = c.Update(ctx, "2", func(o *Order) error { o.Status = "paid"; return nil })
	fmt.Println("open:", sorted(c.IDs(ctx, byStatus.Is("open"))))
	fmt.Println("open or paid:", sorted(c.IDs(ctx, byStatus.In("open", "paid"))))
	// Output:
	// open: [1]
	// open or paid: [1 2 3]
}

func ExampleSparse() {
	ctx := context.Background()
	byRegion := membership.Sparse("region", func(o Order) (string, bool) { return o.Region, !o.Archived })
	c, done := orders(byRegion)
	defer done()

	_, _ = c.PutMany(ctx, []Order{{ID: "1", Region: "eu"}, {ID: "2", Region: "eu"}})
	fmt.Println(sorted(c.IDs(ctx, byRegion.Is("eu"))))
	_, _ = c.Update(ctx, "1", func(o *Order) error { o.Archived = true; return nil })
	fmt.Println(sorted(c.IDs(ctx, byRegion.Is("eu"))))
	// Output:
	// [1 2]
	// [2]
}

func ExampleMulti() {
	ctx := context.Background()
	byLabel := membership.Multi("label", func(o Order) []string { return o.Labels }, membership.Fold, membership.Trim)
	c, done := orders(byLabel)
	defer done()

	_, _ = c.PutMany(ctx, []Order{{ID: "1", Labels: []string{"Gift", "gift ", "fragile"}}, {ID: "2", Labels: []string{"GIFT"}}, {ID: "3"}})
	fmt.Println("gift:", sorted(c.IDs(ctx, byLabel.Is("gift"))))
	fmt.Println("fragile:", sorted(c.IDs(ctx, byLabel.Is(" Fragile"))))
	// Output:
	// gift: [1 2]
	// fragile: [1]
}

func ExampleUnique() {
	ctx := context.Background()
	byNumber := membership.Unique("number", func(o Order) (string, bool) { return o.Number, o.Number != "" })
	c, done := orders(byNumber)
	defer done()

	_ = c.Put(ctx, Order{ID: "1", Number: "2024-17"})
	err := c.Put(ctx, Order{ID: "2", Number: "2024-17"})
	var conflict *index.ConflictError
	fmt.Println("conflict:", errors.As(err, &conflict) && conflict.Holder == "1")

	_ = c.Delete(ctx, "1") // frees the number
	fmt.Println("second try:", c.Put(ctx, Order{ID: "2", Number: "2024-17"}))
	owner, _ := c.One(ctx, byNumber.Is("2024-17"))
	fmt.Println("held by", owner.ID)
	// Output:
	// conflict: true
	// second try: <nil>
	// held by 2
}

func ExampleOf() {
	ctx := context.Background()
	byBoth := membership.New("region_status", func(o Order) membership.Pair[string, string] {
		return membership.Of(o.Region, o.Status)
	})
	c, done := orders(byBoth)
	defer done()

	_, _ = c.PutMany(ctx, []Order{
		{ID: "1", Region: "eu", Status: "open"}, {ID: "2", Region: "eu", Status: "paid"}, {ID: "3", Region: "us", Status: "open"},
	})
	fmt.Println(sorted(c.IDs(ctx, byBoth.Is(membership.Of("eu", "open")))))
	// Output:
	// [1]
}
