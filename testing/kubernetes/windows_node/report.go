package main

import (
	"fmt"
	"strings"
)

// markdown is the report for a bug report, in the form of `verify --output markdown`: no names of
// hosts or users, no paths, no addresses.
func markdown(versions [][2]string, findings []finding) string {
	var text strings.Builder
	text.WriteString("# Test of a Windows node\n\n")
	table(&text, []string{"software", "version"})
	for _, version := range versions {
		row(&text, version[0], version[1])
	}
	fmt.Fprintf(&text, "\n## Steps: %s\n\n", outcomes(findings))
	table(&text, []string{"result", "step", "what", "measured"})
	for _, f := range findings {
		row(&text, string(f.status), f.step, f.what, strings.Join(f.measured, " "))
	}
	return text.String()
}

// outcomes is "1 failed, 0 warning, 3 ok, 2 skipped".
func outcomes(findings []finding) string {
	var counts []string
	for _, status := range []status{failed, warning, ok, skipped} {
		counts = append(counts, fmt.Sprintf("%d %s", count(findings, status), status))
	}
	return strings.Join(counts, ", ")
}

func count(findings []finding, wanted status) int {
	number := 0
	for _, f := range findings {
		if f.status == wanted {
			number++
		}
	}
	return number
}

func table(text *strings.Builder, head []string) {
	fmt.Fprintf(text, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
}

func row(text *strings.Builder, cells ...string) {
	for i, cell := range cells {
		cells[i] = escaped.Replace(strings.Join(strings.Fields(cell), " "))
	}
	fmt.Fprintf(text, "| %s |\n", strings.Join(cells, " | "))
}

// escaped makes text that Markdown does not interpret.
var escaped = strings.NewReplacer("|", `\|`, `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`)
