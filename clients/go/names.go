package rota

import (
	"fmt"
	"strings"
)

// The most characters of names.
const (
	mostGroup  = 31
	mostClient = 10
	mostDaemon = 19
)

// MaxDestinations is the most destinations of one message.
const MaxDestinations = 100

// NameError says that a text is no name: of a group (1 to 31 characters from '$' to '~'), of a client (1 to 10), or of
// another client, #client#daemon.
type NameError struct {
	Text   string
	Reason string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%q is not a name: %s", e.Text, e.Reason)
}

func checkName(text string, most int) error {
	if text == "" {
		return &NameError{text, "a name has at least one character"}
	}
	if len(text) > most {
		return &NameError{text, fmt.Sprintf("the name may have at most %d characters", most)}
	}
	for at := 0; at < len(text); at++ {
		if text[at] < '$' || text[at] > '~' {
			return &NameError{text, "names consist of characters from '$' to '~'"}
		}
	}
	return nil
}

// SplitName takes the private name #client#daemon apart.
func SplitName(private string) (client, daemon string, err error) {
	parts := strings.SplitN(private, "#", 3)
	if len(parts) != 3 || parts[0] != "" {
		return "", "", &NameError{private, "the name of a client is written #client#daemon"}
	}
	if err := checkName(parts[1], mostClient); err != nil {
		return "", "", err
	}
	if err := checkName(parts[2], mostDaemon); err != nil {
		return "", "", err
	}
	return parts[1], parts[2], nil
}

func checkPrivate(text string) error {
	_, _, err := SplitName(text)
	return err
}

func checkDestination(text string) error {
	if strings.HasPrefix(text, "#") {
		return checkPrivate(text)
	}
	return checkName(text, mostGroup)
}
