package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// status is the result of a step, in the words of `directx-device-plugin verify`.
type status string

const (
	ok      status = "ok"
	warning status = "warning"
	failed  status = "failed"
	skipped status = "skipped"
)

// step is one thing that is tried.
type step struct {
	name string
	// proves is what is known if the step succeeds.
	proves string
	limit  time.Duration
	// needs are the earlier steps without which this one says nothing.
	needs []string
	// informative steps are about Windows, not about the product: their failure is a warning.
	informative bool
	// unless is why the step is skipped, or nothing.
	unless string
	// run returns what was measured, without private data.
	run func(context.Context) ([]string, error)
}

// finding is the result of a step. Only detail may contain private data, such as paths.
type finding struct {
	step     string
	status   status
	what     string
	hint     string
	detail   string
	measured []string
}

// problem is a failure that the report describes: what and hint are constant text.
type problem struct {
	what, hint string
	cause      error
}

func (p *problem) Error() string {
	if p.cause == nil {
		return p.what
	}
	return fmt.Sprintf("%s: %v", p.what, p.cause)
}

func (p *problem) Unwrap() error { return p.cause }

// runSteps runs all steps in their order, and calls found for each.
func runSteps(ctx context.Context, steps []step, found func(finding)) []finding {
	var findings []finding
	succeeded := map[string]bool{}
	for _, s := range steps {
		f := s.try(ctx, succeeded)
		succeeded[s.name] = f.status == ok
		findings = append(findings, f)
		found(f)
	}
	return findings
}

func (s step) try(ctx context.Context, succeeded map[string]bool) finding {
	f := finding{step: s.name, status: skipped, what: s.proves}
	missing := slices.IndexFunc(s.needs, func(need string) bool { return !succeeded[need] })
	switch {
	case ctx.Err() != nil:
		f.what = "interrupted before this step"
		return f
	case s.unless != "":
		f.what = s.unless
		return f
	case missing >= 0:
		f.what = "needs the step " + s.needs[missing]
		return f
	}
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	start := time.Now()
	var err error
	f.measured, err = s.run(limited)
	f.measured = append(f.measured, fmt.Sprintf("time=%.1fs", time.Since(start).Seconds()))
	if err == nil {
		f.status = ok
		return f
	}
	f.status = failed
	if s.informative {
		f.status = warning
	}
	f.what, f.hint = "failed; the log has the reason", "read the log of this step"
	var known *problem
	if errors.As(err, &known) {
		f.what, f.hint = known.what, known.hint
	}
	if detail := err.Error(); detail != f.what {
		f.detail = detail
	}
	if limited.Err() != nil && ctx.Err() == nil {
		f.what = fmt.Sprintf("not done after %v: %s", s.limit, f.what)
	}
	return f
}

// text is the finding for the console and the log. It may contain private data.
func (f finding) text() string {
	lines := []string{strings.TrimSpace(fmt.Sprintf("%-8s %-18s %s %s", f.status, f.step, f.what, strings.Join(f.measured, " ")))}
	for _, line := range strings.Split(strings.TrimSpace(f.detail), "\n") {
		if line != "" {
			lines = append(lines, "         "+line)
		}
	}
	if f.hint != "" {
		lines = append(lines, "         hint: "+f.hint)
	}
	return strings.Join(lines, "\n")
}

// eventually asks until the answer is yes. What the last question returned explains a failure.
func eventually(ctx context.Context, what string, ask func() (bool, error)) error {
	for {
		yes, err := ask()
		if yes {
			return nil
		}
		if final := (*problem)(nil); errors.As(err, &final) {
			return err
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = ctx.Err()
			}
			return &problem{"gave up waiting until " + what, "read the logs", err}
		case <-time.After(pollPeriod):
		}
	}
}

// pollPeriod is how often something is asked that takes seconds.
var pollPeriod = time.Second
