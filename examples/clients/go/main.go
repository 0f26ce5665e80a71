// Asks a server over HTTP with Go's standard library. Usage: go run . [host:port]
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Tensor is an input or an output; Data is missing where its bytes stand behind the JSON.
type Tensor struct {
	Name       string         `json:"name"`
	Shape      []int64        `json:"shape,omitempty"`
	Datatype   string         `json:"datatype,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Data       []int32        `json:"data,omitempty"`
}

// Message is the JSON of a request and of its answer.
type Message struct {
	Inputs  []Tensor `json:"inputs,omitempty"`
	Outputs []Tensor `json:"outputs,omitempty"`
}

const headerLength = "Inference-Header-Content-Length"

var client = http.Client{Timeout: 30 * time.Second}

func main() {
	address := "localhost:8000"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if err := run("http://" + address); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(base string) error {
	ready, err := ask(http.MethodGet, base+"/v2/health/ready", nil, 0)
	if err != nil {
		return err
	}
	ready.Body.Close()
	fmt.Println("ready: yes")

	var metadata Message
	if err := askJSON(http.MethodGet, base+"/v2/models/simple", nil, &metadata); err != nil {
		return err
	}
	inputs := make([]string, 0, len(metadata.Inputs))
	for _, input := range metadata.Inputs {
		shape := strings.ReplaceAll(fmt.Sprint(input.Shape), " ", ", ")
		inputs = append(inputs, fmt.Sprintf("%s %s %s", input.Name, input.Datatype, shape))
	}
	fmt.Println("inputs:", strings.Join(inputs, "; "))

	sum, err := inferJSON(base)
	if err != nil {
		return err
	}
	fmt.Println("sum:", strings.Trim(fmt.Sprint(sum), "[]"))
	difference, err := inferBinary(base)
	if err != nil {
		return err
	}
	fmt.Println("difference:", strings.Trim(fmt.Sprint(difference), "[]"))

	fmt.Print("words:")
	if err := words(base, "one word after another"); err != nil {
		return err
	}
	fmt.Println()

	if _, err := ask(http.MethodPost, base+"/v2/models/nothing/infer", []byte(`{"inputs": []}`), 0); err != nil {
		fmt.Println("refused:", err)
	}
	return nil
}

// pair is what the model `simple` takes: sixteen numbers, twice.
func pair() ([]int32, []int32) {
	row, ones := make([]int32, 16), make([]int32, 16)
	for index := range row {
		row[index], ones[index] = int32(index), 1
	}
	return row, ones
}

func inferJSON(base string) ([]int32, error) {
	row, ones := pair()
	request := Message{
		Inputs: []Tensor{
			{Name: "INPUT0", Shape: []int64{1, 16}, Datatype: "INT32", Data: row},
			{Name: "INPUT1", Shape: []int64{1, 16}, Datatype: "INT32", Data: ones},
		},
		Outputs: []Tensor{{Name: "OUTPUT0"}},
	}
	var answer Message
	if err := askJSON(http.MethodPost, base+"/v2/models/simple/infer", request, &answer); err != nil {
		return nil, err
	}
	return answer.Outputs[0].Data, nil
}

// inferBinary sends a JSON header, then the numbers as they lie in memory, and is answered so.
func inferBinary(base string) ([]int32, error) {
	row, ones := pair()
	size := map[string]any{"binary_data_size": 64}
	header, err := json.Marshal(Message{
		Inputs: []Tensor{
			{Name: "INPUT0", Shape: []int64{1, 16}, Datatype: "INT32", Parameters: size},
			{Name: "INPUT1", Shape: []int64{1, 16}, Datatype: "INT32", Parameters: size},
		},
		Outputs: []Tensor{{Name: "OUTPUT1", Parameters: map[string]any{"binary_data": true}}},
	})
	if err != nil {
		return nil, err
	}
	body := bytes.NewBuffer(bytes.Clone(header))
	for _, numbers := range [][]int32{row, ones} {
		if err := binary.Write(body, binary.LittleEndian, numbers); err != nil {
			return nil, err
		}
	}
	response, err := ask(http.MethodPost, base+"/v2/models/simple/infer", body.Bytes(), len(header))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	length, err := strconv.ParseInt(response.Header.Get(headerLength), 10, 64)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, response.Body, length); err != nil {
		return nil, err
	}
	difference := make([]int32, 16)
	return difference, binary.Read(response.Body, binary.LittleEndian, difference)
}

// words prints each response of a stream as it comes: server-sent events, a line `data: {...}` each.
func words(base, text string) error {
	request, err := json.Marshal(map[string]string{"TEXT": text})
	if err != nil {
		return err
	}
	response, err := ask(http.MethodPost, base+"/v2/models/words/generate_stream", request, 0)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, isData := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !isData {
			continue
		}
		var event struct{ WORD string }
		if err := json.Unmarshal(data, &event); err != nil {
			return err
		}
		fmt.Print(" | ", event.WORD)
	}
	return lines.Err()
}

func askJSON(method, url string, request, answer any) error {
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			return err
		}
	}
	response, err := ask(method, url, body, 0)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(answer)
}

// ask makes an error of a refusal: the server says in the field `error` why.
func ask(method, url string, body []byte, header int) (*http.Response, error) {
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if header > 0 {
		request.Header.Set(headerLength, strconv.Itoa(header))
	}
	response, err := client.Do(request)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	defer response.Body.Close()
	var refusal struct{ Error string }
	if err := json.NewDecoder(response.Body).Decode(&refusal); err != nil {
		return nil, fmt.Errorf("%s: %w", response.Status, err)
	}
	return nil, fmt.Errorf("%s", refusal.Error)
}
