// What Docker's own library makes of ignore files: one case per line on stdin, one answer per line on stdout.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

type question struct {
	Text  string   `json:"text"`
	Paths []string `json:"paths"`
}

// Answers of a path: 0 stays, 1 is left out, 2 is an error.
type answer struct {
	Patterns []string `json:"patterns"`
	Error    string   `json:"error"`
	// As BuildKit asks: directory by directory.
	Walked []int `json:"walked"`
	// As the older `docker build` asks: each path by itself.
	Single []int `json:"single"`
}

func number(leftOut bool, err error) int {
	switch {
	case err != nil:
		return 2
	case leftOut:
		return 1
	}
	return 0
}

func walked(matcher *patternmatcher.PatternMatcher, path string) int {
	var above patternmatcher.MatchInfo
	parts := strings.Split(path, "/")
	leftOut := false
	for at := range parts {
		var err error
		leftOut, above, err = matcher.MatchesUsingParentResults(strings.Join(parts[:at+1], "/"), above)
		if err != nil {
			return 2
		}
	}
	return number(leftOut, nil)
}

func ask(asked question) answer {
	patterns, err := ignorefile.ReadAll(strings.NewReader(asked.Text))
	if err != nil {
		return answer{Error: err.Error()}
	}
	result := answer{Patterns: patterns}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		result.Error = err.Error()
		return result
	}
	for _, path := range asked.Paths {
		result.Walked = append(result.Walked, walked(matcher, path))
		result.Single = append(result.Single, number(matcher.MatchesOrParentMatches(path)))
	}
	return result
}

func main() {
	if len(os.Args) > 1 {
		fmt.Println("usage: ignore-oracle < CASES")
		return
	}
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer output.Flush()
	decoder, encoder := json.NewDecoder(input), json.NewEncoder(output)
	for {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			return
		}
		if err := encoder.Encode(ask(asked)); err != nil {
			os.Exit(1)
		}
	}
}
