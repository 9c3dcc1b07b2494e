package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func succeed(context.Context) ([]string, error) { return []string{"devices=1"}, nil }

func TestAFailedStepHidesOnlyThoseThatNeedIt(t *testing.T) {
	secret := errors.New(`C:\Users\alice is not readable on host-17`)
	steps := []step{
		{name: "first", proves: "first works", limit: time.Minute, run: succeed},
		{name: "broken", limit: time.Minute, run: func(context.Context) ([]string, error) {
			return nil, &problem{"the network is missing", "start Docker", secret}
		}},
		{name: "dependent", limit: time.Minute, needs: []string{"broken"}, run: succeed},
		{name: "indirect", limit: time.Minute, needs: []string{"dependent"}, run: succeed},
		{name: "independent", proves: "works anyway", limit: time.Minute, needs: []string{"first"}, run: succeed},
		{name: "informative", limit: time.Minute, informative: true, run: func(context.Context) ([]string, error) { return nil, secret }},
		{name: "hanging", limit: time.Millisecond, run: func(ctx context.Context) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		{name: "not here", unless: "only on a host without GPU", run: succeed},
	}
	findings := runSteps(context.Background(), steps, func(finding) {})
	for i := range findings {
		last := len(findings[i].measured) - 1
		if last >= 0 && strings.HasPrefix(findings[i].measured[last], "time=") {
			findings[i].measured[last] = "time=1.0s"
		}
	}
	got := markdown([][2]string{{"kubelet", "1.37.0"}}, findings)
	const wanted = `# Test of a Windows node

| software | version |
|---|---|
| kubelet | 1.37.0 |

## Steps: 2 failed, 1 warning, 2 ok, 3 skipped

| result | step | what | measured |
|---|---|---|---|
| ok | first | first works | devices=1 time=1.0s |
| failed | broken | the network is missing | time=1.0s |
| skipped | dependent | needs the step broken |  |
| skipped | indirect | needs the step dependent |  |
| ok | independent | works anyway | devices=1 time=1.0s |
| warning | informative | failed; the log has the reason | time=1.0s |
| failed | hanging | not done after 1ms: failed; the log has the reason | time=1.0s |
| skipped | not here | only on a host without GPU |  |
`
	if got != wanted {
		t.Errorf("the report is\n%s\nexpected\n%s", got, wanted)
	}
	if text := findings[1].text(); !strings.Contains(text, "alice") || !strings.Contains(text, "hint: start Docker") {
		t.Errorf("the log has no reason or no hint: %s", text)
	}
}

func TestInterruptedStepsAreSkipped(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	steps := []step{
		{name: "first", limit: time.Minute, run: func(ctx context.Context) ([]string, error) {
			interrupt()
			return nil, ctx.Err()
		}},
		{name: "second", limit: time.Minute, run: succeed},
	}
	findings := runSteps(ctx, steps, func(finding) {})
	if findings[0].status != failed || findings[1].status != skipped {
		t.Errorf("%+v", findings)
	}
}

func TestACellIsPlainText(t *testing.T) {
	var text strings.Builder
	row(&text, "a|b\nc<img>`x`")
	if got := text.String(); got != "| a\\|b c\\<img\\>\\`x\\` |\n" {
		t.Error(got)
	}
}

func TestStepsNeedEarlierSteps(t *testing.T) {
	known := map[string]bool{}
	for _, s := range (&node{}).steps() {
		for _, need := range s.needs {
			if !known[need] {
				t.Errorf("step %s needs %s, which is no earlier step", s.name, need)
			}
		}
		if known[s.name] || s.proves == "" || s.limit == 0 {
			t.Errorf("step %+v", s)
		}
		known[s.name] = true
	}
}
