package service

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// manual is the type of each key that agentop uses, as launchd.plist(5), Apple's
// manual page, gives it. A key of another name launchd passes over without a
// word, and one of another type too.
var manual = map[string]string{
	"Label":                            "string",
	"ProgramArguments":                 "array",
	"ProgramArguments.":                "string",
	"EnvironmentVariables":             "dict",
	"EnvironmentVariables.*":           "string",
	"RunAtLoad":                        "boolean",
	"KeepAlive":                        "dict", // or boolean
	"KeepAlive.SuccessfulExit":         "boolean",
	"ThrottleInterval":                 "integer", // seconds between two starts; 10 if it is not given
	"ExitTimeOut":                      "integer", // seconds from SIGTERM to SIGKILL
	"ProcessType":                      "string",  // one of processTypes
	"AbandonProcessGroup":              "boolean",
	"Umask":                            "integer", // decimal: a property list knows no octal
	"SoftResourceLimits":               "dict",
	"SoftResourceLimits.NumberOfFiles": "integer",
	"StandardErrorPath":                "string",
}

var processTypes = []string{"Background", "Standard", "Adaptive", "Interactive"}

// typesOf reads a property list strictly and gives the type of each key, by its
// path, and the texts of strings.
func typesOf(t *testing.T, text string) (types, texts map[string]string) {
	t.Helper()
	types, texts = map[string]string{}, map[string]string{}
	d := xml.NewDecoder(strings.NewReader(text))
	var path, keys []string // open elements; of each open dict its last key
	content := ""
	value := func(kind string) {
		if len(keys) == 0 {
			return // the list itself
		}
		name := strings.Join(keys, ".")
		if before, found := types[name]; found && path[len(path)-1] == "dict" {
			t.Errorf("key %s is there twice, as %s and %s", name, before, kind)
		}
		types[name] = kind
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return types, texts
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, text)
		}
		switch e := token.(type) {
		case xml.StartElement:
			content = ""
			switch e.Name.Local {
			case "dict", "array":
				value(e.Name.Local)
				keys = append(keys, "")
			case "string", "integer":
				value(e.Name.Local)
			case "true", "false":
				value("boolean")
			}
			path = append(path, e.Name.Local)
		case xml.CharData:
			content += string(e)
		case xml.EndElement:
			path = path[:len(path)-1]
			switch e.Name.Local {
			case "dict", "array":
				keys = keys[:len(keys)-1]
			case "key":
				keys[len(keys)-1] = content
			case "string":
				texts[strings.Join(keys, ".")] = content
			}
		}
	}
}

func TestPropertyListHasTheTypesOfLaunchdsManual(t *testing.T) {
	p := newPlace(t)
	types, texts := typesOf(t, plist(p.spec(), true))
	if len(types) < 14 {
		t.Errorf("it has only %q", types)
	}
	for name, got := range types {
		want, known := manual[name]
		if parent, _, nested := strings.Cut(name, "."); !known && nested {
			want, known = manual[parent+".*"]
		}
		if !known || got != want {
			t.Errorf("%s is of type %s; the manual has it as %q", name, got, want)
		}
	}
	for _, needed := range []string{"Label", "ProgramArguments"} {
		if types[needed] == "" {
			t.Errorf("%s, without which launchd loads nothing, is missing", needed)
		}
	}
	if kind := texts["ProcessType"]; !strings.Contains(strings.Join(processTypes, " "), kind) || kind == "" {
		t.Errorf("ProcessType is %q, want one of %q", kind, processTypes)
	}
	if !strings.HasSuffix(newLaunchd(System{}, p.home, p.user).path(), "/"+texts["Label"]+".plist") {
		t.Errorf("the file is not named after its label %q", texts["Label"])
	}
}
