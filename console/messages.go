package console

import (
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
)

// catalogueFiles are the texts of the console: a JSON object for each language, by key, with the
// placeholders of package fmt. The part of a key after the dot may be an API value: a status, a
// code, a role.
//
//go:embed catalogue/en.json catalogue/zh.json
var catalogueFiles embed.FS

// message is one text in every language of the console.
type message struct{ en, zh string }

// catalogue holds every text of the console by key.
var catalogue = func() map[string]message {
	all := map[string]message{}
	for key, text := range texts("catalogue/en.json") {
		all[key] = message{en: text}
	}
	for key, text := range texts("catalogue/zh.json") {
		all[key] = message{en: all[key].en, zh: text}
	}
	return all
}()

// texts reads a file of the catalogue, which is part of the program: a file that is not JSON is a
// defect of the build.
func texts(name string) (out map[string]string) {
	raw, err := catalogueFiles.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("console: %s: %v", name, err))
	}
	return out
}

// translate returns a message in a language, with args formatted into it. An unknown key is an error.
func translate(l language, key string, args ...any) (string, error) {
	m, ok := catalogue[key]
	if !ok {
		return "", fmt.Errorf("message %q is not in the catalogue", key)
	}
	text := m.en
	if l == chinese {
		text = m.zh
	}
	if len(args) == 0 {
		return text, nil
	}
	for i, arg := range args {
		if v := reflect.ValueOf(arg); v.Kind() == reflect.Pointer && !v.IsNil() {
			args[i] = v.Elem().Interface()
		}
	}
	return fmt.Sprintf(text, args...), nil
}
