// Go's side of the YAML comparison: the libraries inside Helm and kustomize, asked directly.
//
//	go-yaml answer < inputs.json > answers.json   what Go makes of each input (fields as in the shared suite)
//	go-yaml bench WHAT FILE [COUNT]               times reading or writing a file, prints seconds and peak memory
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/kyaml/kio"
	sigs "sigs.k8s.io/yaml"
)

type answer map[string]any

func main() {
	if len(os.Args) < 2 {
		fatal("usage: go-yaml answer | bench WHAT FILE [COUNT]")
	}
	switch os.Args[1] {
	case "answer":
		answerAll()
	case "bench":
		bench()
	default:
		fatal("unknown command " + os.Args[1])
	}
}

func fatal(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}

func answerAll() {
	debug.SetMaxStack(64 << 20)
	var cases []answer
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		fatal(err.Error())
	}
	for _, one := range cases {
		input, _ := one["input"].(string)
		if encoded, ok := one["input_b64"].(string); ok {
			decoded, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				fatal(err.Error())
			}
			input = string(decoded)
		}
		helm(one, []byte(input))
		if one["no_kustomize"] == nil {
			kustomize(one, []byte(input))
		}
		nodes(one, []byte(input))
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(cases); err != nil {
		fatal(err.Error())
	}
}

func guard(one answer, field string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			one[field+"_error"] = fmt.Sprint("panic: ", r)
		}
	}()
	f()
}

func helm(one answer, input []byte) {
	guard(one, "read2json", func() {
		read, err := sigs.YAMLToJSON(input)
		if err != nil {
			one["read2json_error"] = err.Error()
			return
		}
		one["read2json"] = string(read)
		if _, err := sigs.YAMLToJSONStrict(input); err != nil {
			one["strict2_error"] = err.Error()
		}
	})
	if one["read2json"] == nil {
		return
	}
	var value any
	if err := sigs.Unmarshal(input, &value); err != nil {
		one["write2_error"] = err.Error()
		return
	}
	guard(one, "write2", func() {
		written, err := sigs.Marshal(value)
		if err != nil {
			one["write2_error"] = err.Error()
			return
		}
		one["write2"] = string(written)
	})
	if printed, err := json.Marshal(value); err == nil {
		one["tojson2"] = string(printed)
	}
	guard(one, "pretty2", func() {
		var out bytes.Buffer
		encoder := yamlv3.NewEncoder(&out)
		encoder.SetIndent(2)
		if err := encoder.Encode(value); err == nil {
			one["pretty2"] = out.String()
		}
	})
}

func kustomize(one answer, input []byte) {
	guard(one, "kyaml", func() {
		read, err := kio.FromBytes(input)
		if err != nil {
			one["kyaml_error"] = err.Error()
			return
		}
		var printed []string
		for _, node := range read {
			asJSON, err := node.MarshalJSON()
			if err != nil {
				one["asyaml3_error"] = err.Error()
				return
			}
			asYAML, err := sigs.JSONToYAML(asJSON)
			if err != nil {
				one["asyaml3_error"] = err.Error()
				return
			}
			printed = append(printed, string(asYAML))
		}
		one["asyaml3"] = strings.Join(printed, "---\n")
	})
}

func nodes(one answer, input []byte) {
	var out strings.Builder
	guard(one, "v3node", func() {
		decoder := yamlv3.NewDecoder(bytes.NewReader(input))
		for {
			var node yamlv3.Node
			err := decoder.Decode(&node)
			if err == io.EOF {
				break
			}
			if err != nil {
				one["v3node_error"] = err.Error()
				break
			}
			outline(&out, &node, 0)
		}
	})
	one["v3node"] = out.String()
}

func outline(out *strings.Builder, node *yamlv3.Node, depth int) {
	kinds := map[yamlv3.Kind]string{
		yamlv3.DocumentNode: "doc", yamlv3.MappingNode: "map", yamlv3.SequenceNode: "seq",
		yamlv3.ScalarNode: "scalar", yamlv3.AliasNode: "alias",
	}
	fmt.Fprintf(out, "%s%d:%d %s", strings.Repeat(" ", depth), node.Line, node.Column, kinds[node.Kind])
	if node.Tag != "" {
		out.WriteString(" " + node.Tag)
	}
	for _, style := range []struct {
		bit  yamlv3.Style
		name string
	}{
		{yamlv3.TaggedStyle, "tagged"}, {yamlv3.DoubleQuotedStyle, "double"}, {yamlv3.SingleQuotedStyle, "single"},
		{yamlv3.LiteralStyle, "literal"}, {yamlv3.FoldedStyle, "folded"}, {yamlv3.FlowStyle, "flow"},
	} {
		if node.Style&style.bit != 0 {
			out.WriteString(" " + style.name)
		}
	}
	if node.Anchor != "" {
		out.WriteString(" &" + node.Anchor)
	}
	if node.Kind == yamlv3.ScalarNode || node.Kind == yamlv3.AliasNode {
		var value bytes.Buffer
		encoder := json.NewEncoder(&value)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(node.Value)
		out.WriteString(" " + strings.TrimSuffix(value.String(), "\n"))
	}
	out.WriteString("\n")
	for _, child := range node.Content {
		outline(out, child, depth+1)
	}
}

// The documents of a file, split at lines that are exactly `---`.
func documents(path string) [][]byte {
	text, err := os.ReadFile(path)
	if err != nil {
		fatal(err.Error())
	}
	return bytes.Split(text, []byte("\n---\n"))
}

func bench() {
	if len(os.Args) < 4 {
		fatal("usage: go-yaml bench WHAT FILE [COUNT]")
	}
	what, path, count := os.Args[2], os.Args[3], 1
	if len(os.Args) > 4 {
		count, _ = strconv.Atoi(os.Args[4])
	}
	parts := documents(path)
	whole, _ := os.ReadFile(path)
	values := make([]any, len(parts))
	for i, part := range parts {
		if what == "write" {
			if err := sigs.Unmarshal(part, &values[i]); err != nil {
				fatal(err.Error())
			}
		}
	}
	best := time.Duration(1 << 62)
	for range count {
		start := time.Now()
		switch what {
		case "helm":
			for i, part := range parts {
				if err := sigs.Unmarshal(part, &values[i]); err != nil {
					fatal(err.Error())
				}
			}
		case "json":
			for _, part := range parts {
				if _, err := sigs.YAMLToJSON(part); err != nil {
					fatal(err.Error())
				}
			}
		case "kustomize":
			if _, err := kio.FromBytes(whole); err != nil {
				fatal(err.Error())
			}
		case "write":
			for _, value := range values {
				if _, err := sigs.Marshal(value); err != nil {
					fatal(err.Error())
				}
			}
		}
		best = min(best, time.Since(start))
	}
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	fmt.Printf("%.4f %d\n", best.Seconds(), usage.Maxrss)
}
