package lockstep_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/membership"
)

type User struct{ ID, Team, Email string }

var (
	ByTeam = membership.New("team", func(u User) string { return u.Team })
	ByMail = membership.Unique("mail", func(u User) (string, bool) { return u.Email, u.Email != "" }, membership.Fold)

	Users = index.Define("acme:web", "user", index.Options[User]{
		ID: func(u User) string { return u.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[User]{ByTeam, ByMail},
	})
)

func Example() {
	ctx := context.Background()
	server, _ := miniredis.Run() // any Redis from 6.2 on
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})

	users, err := index.Open(ctx, rdb, Users)
	fmt.Println("open:", err)
	fmt.Println("put:", users.Put(ctx, User{"u1", "red", "Ann@x.org"})) // record and both entries, one step
	fmt.Println("taken:", users.Create(ctx, User{"u2", "red", "ann@X.org"}))
	_, err = users.Update(ctx, "u1", func(u *User) error { u.Team = "blue"; return nil })
	fmt.Println("update:", err)
	for u, err := range users.Find(ctx, ByTeam.Is("blue")) {
		fmt.Println("found:", u.ID, err)
	}
	// Output:
	// open: <nil>
	// put: <nil>
	// taken: lockstep: another record holds a unique value: acme:web:user "u2" (index mail)
	// update: <nil>
	// found: u1 <nil>
}
