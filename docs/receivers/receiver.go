// Takes Earshot's webhooks. Go 1.19 or later, nothing else.
//
//	SECRET=hush go run receiver.go               the Connection has headers: {"x-secret": "hush"}
//	WEBHOOK_SECRET=whsec_... go run receiver.go  the Connection has signingSecrets: ["whsec_..."]
//
// What a receiver must do: check who sends, remember `name` and take each Scan once, answer at once, and do
// the work afterwards. Without either secret it takes what anybody sends: for trying out alone.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type event struct {
	Name string
	Post struct{ Title, Text, URL string }
}

var (
	secret  = os.Getenv("SECRET")
	signing = os.Getenv("WEBHOOK_SECRET")
	seen    sync.Map // a database, in earnest: unique by `name`
	work    = make(chan event, 10000)
)

func genuine(headers http.Header, body []byte) bool {
	if secret != "" && !hmac.Equal([]byte(headers.Get("x-secret")), []byte(secret)) {
		return false
	}
	if signing == "" {
		return true
	}
	stamp := headers.Get("webhook-timestamp") // https://www.standardwebhooks.com
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	age := time.Since(time.Unix(seconds, 0))
	if err != nil || age > 5*time.Minute || age < -5*time.Minute {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signing, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", headers.Get("webhook-id"), stamp)
	mac.Write(body)
	mine := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, theirs := range strings.Split(headers.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(mine), []byte(theirs)) {
			return true
		}
	}
	return false
}

func receive(answer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(answer, request.Body, 1<<20))
	if err != nil {
		answer.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if !genuine(request.Header, body) {
		answer.WriteHeader(http.StatusUnauthorized)
		return
	}
	var it event
	if json.Unmarshal(body, &it) != nil || it.Name == "" {
		answer.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, known := seen.LoadOrStore(it.Name, true); !known {
		work <- it
	}
	// Also to one that came before: it is here, and needs not come again.
	answer.WriteHeader(http.StatusNoContent)
}

func use() {
	for it := range work {
		words := it.Post.Title
		if words == "" {
			words = it.Post.Text
		}
		fmt.Printf("scan %s %q %s\n", it.Name, words, it.Post.URL)
	}
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go use()
	fmt.Printf("ready http://%s/\n", listener.Addr())
	server := http.Server{Handler: http.HandlerFunc(receive), ReadTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, server.Serve(listener))
}
