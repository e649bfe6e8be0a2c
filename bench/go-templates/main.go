// Executes the templates of a chart with Go's engine, as Helm 3.17.3 sets it up, and tells how long that takes.
//
//	go-templates NAME CHART VALUES DUMP
//
// writes what it executed and what came out to DUMP as JSON, for the other side to do the same, and prints
// `NAME EXECUTE_NS ALLOCATIONS RENDER_NS`: executing the parsed templates, and Helm's own Render, parsing included.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime"
	"sort"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

type file struct {
	Name   string `json:"name"`
	Text   string `json:"text"`
	Scope  int    `json:"scope"`
	Output string `json:"output"`
}

type dump struct {
	Files  []file           `json:"files"`
	Scopes []map[string]any `json:"scopes"`
	scopes []map[string]any
	bases  []string
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// withoutSchemas drops the schemas: some refer to addresses.
func withoutSchemas(c *chart.Chart) {
	c.Schema = nil
	for _, sub := range c.Dependencies() {
		withoutSchemas(sub)
	}
}

// collect gathers the templates of a chart and its dependencies, each with the scope it runs in.
func (d *dump) collect(c *chart.Chart, vals map[string]any) {
	values, _ := vals["Values"].(chartutil.Values)
	if values == nil {
		values = chartutil.Values{}
	}
	scope := map[string]any{
		"Chart": struct {
			chart.Metadata
			IsRoot bool
		}{*c.Metadata, c.IsRoot()},
		"Files":        map[string][]byte{},
		"Release":      vals["Release"],
		"Capabilities": vals["Capabilities"],
		"Values":       values,
		"Subcharts":    map[string]any{},
	}
	for _, sub := range c.Dependencies() {
		inner, _ := values[sub.Name()].(map[string]any)
		d.collect(sub, map[string]any{"Values": chartutil.Values(inner), "Release": vals["Release"], "Capabilities": vals["Capabilities"]})
	}
	index := len(d.Scopes)
	d.scopes = append(d.scopes, scope)
	d.bases = append(d.bases, path.Join(c.ChartFullPath(), "templates"))
	d.Scopes = append(d.Scopes, map[string]any{
		"Values":  values,
		"Release": vals["Release"],
		"Chart": map[string]any{
			"Name": c.Metadata.Name, "Version": c.Metadata.Version, "AppVersion": c.Metadata.AppVersion,
			"APIVersion": c.Metadata.APIVersion, "Type": c.Metadata.Type, "IsRoot": c.IsRoot(), "Annotations": c.Metadata.Annotations,
		},
	})
	for _, t := range c.Templates {
		base := path.Base(t.Name)
		if (c.Metadata.Type == "library" && !strings.HasPrefix(base, "_")) || base == "NOTES.txt" || base == ".helmignore" {
			continue
		}
		d.Files = append(d.Files, file{Name: path.Join(c.ChartFullPath(), t.Name), Text: string(t.Data), Scope: index})
	}
}

func functions(t *template.Template) template.FuncMap {
	f := sprig.TxtFuncMap()
	delete(f, "env")
	delete(f, "expandenv")
	f["toYaml"] = func(v any) string {
		data, err := yaml.Marshal(v)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(data), "\n")
	}
	f["fromYaml"] = func(text string) map[string]any {
		m := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			m["Error"] = err.Error()
		}
		return m
	}
	f["fromYamlArray"] = func(text string) []any {
		a := []any{}
		if err := yaml.Unmarshal([]byte(text), &a); err != nil {
			a = []any{err.Error()}
		}
		return a
	}
	f["fromJson"] = f["fromYaml"]
	f["fromJsonArray"] = f["fromYamlArray"]
	f["toToml"] = func(v any) string { return "" }
	f["lookup"] = func(string, string, string, string) (map[string]any, error) { return map[string]any{}, nil }
	f["required"] = func(warn string, v any) (any, error) {
		if v == nil || v == "" {
			return v, fmt.Errorf("%s", warn)
		}
		return v, nil
	}
	bind(t, f)
	return f
}

// bind adds the functions that call templates of t.
func bind(t *template.Template, f template.FuncMap) {
	f["include"] = func(name string, data any) (string, error) {
		var buf strings.Builder
		err := t.ExecuteTemplate(&buf, name, data)
		return buf.String(), err
	}
	f["tpl"] = func(text string, data any) (string, error) {
		clone, err := t.Clone()
		if err != nil {
			return "", err
		}
		clone.Option("missingkey=zero")
		inner := template.FuncMap{}
		bind(clone, inner)
		clone.Funcs(inner)
		parsed, err := clone.New("gotpl").Parse(text)
		if err != nil {
			return "", err
		}
		var buf strings.Builder
		err = parsed.Execute(&buf, data)
		return strings.ReplaceAll(buf.String(), "<no value>", ""), err
	}
}

func (d *dump) execute(t *template.Template, keep bool) error {
	for i := range d.Files {
		f := &d.Files[i]
		if strings.HasPrefix(path.Base(f.Name), "_") {
			continue
		}
		scope := d.scopes[f.Scope]
		scope["Template"] = chartutil.Values{"Name": f.Name, "BasePath": d.bases[f.Scope]}
		var buf strings.Builder
		if err := t.ExecuteTemplate(&buf, f.Name, scope); err != nil {
			return err
		}
		if keep {
			f.Output = strings.ReplaceAll(buf.String(), "<no value>", "")
		}
	}
	return nil
}

// measure calls work for at least a second and returns nanoseconds and allocations per call.
func measure(work func() error) (int64, uint64) {
	check(work())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, count := time.Now(), 0
	for time.Since(start) < time.Second {
		check(work())
		count++
	}
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	return elapsed.Nanoseconds() / int64(count), (after.Mallocs - before.Mallocs) / uint64(count)
}

func main() {
	name, dir, valuesFile, out := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	c, err := loader.Load(dir)
	check(err)
	withoutSchemas(c)
	own := map[string]any{}
	if valuesFile != "" {
		own, err = chartutil.ReadValuesFile(valuesFile)
		check(err)
	}
	check(chartutil.ProcessDependenciesWithMerge(c, own))
	options := chartutil.ReleaseOptions{Name: "bench", Namespace: "default", Revision: 1, IsInstall: true}
	vals, err := chartutil.ToRenderValues(c, own, options, chartutil.DefaultCapabilities)
	check(err)

	d := &dump{}
	d.collect(c, vals)
	sort.SliceStable(d.Files, func(i, j int) bool {
		a, b := d.Files[i].Name, d.Files[j].Name
		if n, m := strings.Count(a, "/"), strings.Count(b, "/"); n != m {
			return n > m
		}
		return a > b
	})
	t := template.New("gotpl").Option("missingkey=zero")
	t.Funcs(functions(t))
	for _, f := range d.Files {
		_, err := t.New(f.Name).Parse(f.Text)
		check(err)
	}
	// The values as they are before templates change them.
	values, err := json.Marshal(d.Scopes)
	check(err)
	check(d.execute(t, true))
	d.Scopes = nil
	check(json.Unmarshal(values, &d.Scopes))
	data, err := json.Marshal(d)
	check(err)
	check(os.WriteFile(out, data, 0o644))

	execute, allocations := measure(func() error { return d.execute(t, false) })
	render, _ := measure(func() error {
		_, err := engine.Render(c, vals)
		return err
	})
	fmt.Println(name, execute, allocations, render)
}
