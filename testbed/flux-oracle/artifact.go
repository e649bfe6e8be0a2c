package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
)

// pack copies what source-controller would put into the artifact: regular files that no rule excludes. The default
// excludes hold only while there are no rules at all.
func pack(repo, artifact, ignore string) error {
	repo, err := filepath.Abs(repo)
	if err != nil {
		return err
	}
	domain := strings.Split(repo, string(filepath.Separator))
	rules, err := sourceignore.LoadIgnorePatterns(repo, domain)
	if err != nil {
		return err
	}
	rules = append(rules, sourceignore.ReadPatterns(strings.NewReader(ignore), domain)...)
	matcher := sourceignore.NewDefaultMatcher(rules, domain)
	if len(rules) > 0 {
		matcher = sourceignore.NewMatcher(append(sourceignore.VCSPatterns(domain), rules...))
	}
	return filepath.WalkDir(repo, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repo, path)
		if err != nil {
			return err
		}
		target := filepath.Join(artifact, relative)
		ignored := matcher.Match(strings.Split(path, string(filepath.Separator)), entry.IsDir())
		switch {
		// A directory that is ignored is entered all the same: a later rule may bring back what lies in it.
		case relative == "." || ignored:
			return nil
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case entry.Type().IsRegular():
			return copyFile(path, target)
		}
		return nil
	})
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}
