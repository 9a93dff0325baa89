// git-client asks a Git server as Flux does: with its own client, of its own version, in the way its source-controller
// uses it; and as go-git does by itself where Flux does not (a fetch into what is there).
//
//	GIT_USER=… GIT_SECRET=… git-client checkout URL FOLDER [REVISION]
//	GIT_USER=… GIT_SECRET=… git-client fetch URL FOLDER
//
// Prints one line: "REVISION new" or "REVISION same", and for a fetch the number of objects that are there.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"github.com/fluxcd/pkg/git"
	"github.com/fluxcd/pkg/git/gogit"
	"github.com/fluxcd/pkg/git/repository"
	gogitv5 "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

const (
	branch   = "main"
	deadline = 60 * time.Second
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		version()
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	switch {
	case len(arguments) == 3 && arguments[0] == "checkout":
		return checkout(ctx, arguments[1], arguments[2], "")
	case len(arguments) == 4 && arguments[0] == "checkout":
		return checkout(ctx, arguments[1], arguments[2], arguments[3])
	case len(arguments) == 3 && arguments[0] == "fetch":
		return fetch(ctx, arguments[1], arguments[2])
	}
	return errors.New("usage: git-client checkout URL FOLDER [REVISION] | fetch URL FOLDER")
}

// checkout is what source-controller does at each interval: a shallow clone of one branch, unless nothing is new.
func checkout(ctx context.Context, address, folder, observed string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return err
	}
	secret := map[string][]byte{"username": []byte(os.Getenv("GIT_USER")), "password": []byte(os.Getenv("GIT_SECRET"))}
	access, err := git.NewAuthOptions(*parsed, secret)
	if err != nil {
		return err
	}
	options := []gogit.ClientOption{gogit.WithDiskStorage()}
	if access.Transport == git.HTTP {
		options = append(options, gogit.WithInsecureCredentialsOverHTTP())
	}
	client, err := gogit.NewClient(folder, access, options...)
	if err != nil {
		return err
	}
	defer client.Close()
	commit, err := client.Clone(ctx, address, repository.CloneConfig{
		CheckoutStrategy:   repository.CheckoutStrategy{Branch: branch},
		ShallowClone:       true,
		LastObservedCommit: observed,
	})
	if err != nil {
		return err
	}
	news := "same"
	if git.IsConcreteCommit(*commit) {
		news = "new"
	}
	fmt.Println(commit.String(), news)
	return nil
}

// fetch brings one branch, whole, into a bare repository that may hold some of it already.
func fetch(ctx context.Context, address, folder string) error {
	mirror, err := gogitv5.PlainOpen(folder)
	if errors.Is(err, gogitv5.ErrRepositoryNotExists) {
		mirror, err = gogitv5.PlainInit(folder, true)
	}
	if err != nil {
		return err
	}
	name := plumbing.NewBranchReferenceName(branch)
	remote := gogitv5.NewRemote(mirror.Storer, &config.RemoteConfig{Name: "origin", URLs: []string{address}})
	err = remote.FetchContext(ctx, &gogitv5.FetchOptions{
		RefSpecs: []config.RefSpec{config.RefSpec(fmt.Sprintf("+%s:%s", name, name))},
		Auth:     &http.BasicAuth{Username: os.Getenv("GIT_USER"), Password: os.Getenv("GIT_SECRET")},
		Tags:     gogitv5.NoTags,
	})
	news := "new"
	if errors.Is(err, gogitv5.NoErrAlreadyUpToDate) {
		news, err = "same", nil
	}
	if err != nil {
		return err
	}
	head, err := mirror.Reference(name, true)
	if err != nil {
		return err
	}
	held, err := mirror.Objects()
	if err != nil {
		return err
	}
	count := 0
	if err = held.ForEach(func(object.Object) error { count++; return nil }); err != nil {
		return err
	}
	fmt.Println(head.Hash(), news, count)
	return nil
}

func version() {
	built, _ := debug.ReadBuildInfo()
	for _, module := range built.Deps {
		if module.Path == "github.com/fluxcd/pkg/git" || module.Path == "github.com/go-git/go-git/v5" {
			fmt.Println(module.Path, module.Version)
		}
	}
}
