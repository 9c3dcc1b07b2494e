package manifests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSYSTEMUsesNoFoldersOfUsers checks everything in cloud and deploy, the chart included, and
// every HostProcess pod in examples: what runs as SYSTEM must not be in a folder that ordinary users
// can create or change.
func TestSYSTEMUsesNoFoldersOfUsers(t *testing.T) {
	checked := 0
	for _, folder := range []string{"cloud", "deploy", "examples"} {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(path string, entry fs.DirEntry, err error) error {
			// Pages describe what an administrator does.
			if err != nil || entry.IsDir() || filepath.Ext(path) == ".md" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || (folder == "examples" && !hostProcess.Match(text)) {
				return err
			}
			checked++
			for _, fault := range foldersOfUsers(string(text)) {
				t.Errorf("%s:%s: users may create or change it; use a folder below C:\\Windows", path, fault)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checked < 30 {
		t.Errorf("only %d files were checked", checked)
	}
}

var hostProcess = regexp.MustCompile(`hostProcess"?\s*:\s*"?true`)

// trustedFolders are those in which Windows lets only administrators create something, and
// openFolders are those below them in which every user may.
var (
	trustedFolders = regexp.MustCompile(`(?i)^[a-z]:\\(windows|program files|program files \(x86\))(\\|['"\s;,)\]}]|$)`)
	openFolders    = regexp.MustCompile(`(?i)\\windows[\\'"\s,]+(temp|tasks|tracing|debug|registration|system32\\(tasks|spool|com|fxstmp|microsoft\\crypto)|syswow64\\(tasks|com|fxstmp))\b`)
)

var (
	// drivePath is the beginning of a path with a drive. In a URL, the letter before the colon is
	// part of a word.
	drivePath = regexp.MustCompile(`(?i)\b[a-z]:\\`)
	// userVariables are the variables of folders in which users may create something.
	userVariables = regexp.MustCompile(`(?i)(?:\benv:\\?|[%!]|variable\(\s*['"]?)(programdata|allusersprofile|public|temp|tmp|userprofile|(?:local)?appdata|home(?:drive|path)|systemdrive)\b`)
	// userCalls are functions that return such folders, or create files in them.
	userCalls = regexp.MustCompile(`(?i)gettemppath|gettempfilename|new-temporaryfile|getfolderpath|specialfolder`)
	// userPaths are such folders on the current drive.
	userPaths = regexp.MustCompile(`(?i)(?:^|[\s'"=(,])\\(?:programdata|users|temp|windows\\temp)\b`)
	// windowsFolder are the variables of the folder of Windows.
	windowsFolder = regexp.MustCompile(`(?i)\$\{?env:(?:systemroot|windir)\}?|%(?:systemroot|windir)%`)
	// assignment gives a program another folder for temporary files.
	assignment = regexp.MustCompile(`(?i)^\s*\$env:te?mp\s*=`)
)

// privateFolder is the function that refuses a folder of users. Another test is about it.
const privateFolder = "New-PrivateFolder ("

// foldersOfUsers returns the lines of a text, without comments, that name a folder in which ordinary
// users may create something.
func foldersOfUsers(text string) []string {
	var found []string
	number := 0
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, privateFolder) {
			continue
		}
		// YAML and JSON may double a backslash, and Windows accepts a slash in its place.
		path := strings.ReplaceAll(strings.ReplaceAll(trimmed, `\\`, `\`), "/", `\`)
		code := assignment.ReplaceAllString(windowsFolder.ReplaceAllLiteralString(path, `C:\Windows`), "")
		if userVariables.MatchString(code) || userCalls.MatchString(code) || userPaths.MatchString(code) || openFolders.MatchString(code) || hasOtherFolder(code) {
			found = append(found, fmt.Sprintf("%d: %s", number, trimmed))
		}
	}
	return found
}

// hasOtherFolder reports whether a line has a path with a drive that is not below a trusted folder,
// or leads out of it.
func hasOtherFolder(line string) bool {
	for _, place := range drivePath.FindAllStringIndex(line, -1) {
		path := line[place[0]:]
		if !trustedFolders.MatchString(path) || strings.Contains(path, `\..`) {
			return true
		}
	}
	return false
}
