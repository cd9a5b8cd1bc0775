package packet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/money"
)

// update rewrites the test vectors and their table in docs/fairness.md. A change of an existing
// vector breaks published commitments: it needs a new Algorithm name.
var update = flag.Bool("update", false, "rewrite golden files")

const (
	vectorsFile  = "testdata/split_vectors.json"
	fairnessDoc  = "../../docs/fairness.md"
	tableBegin   = "<!-- test vectors: written by go test ./packet -run Vectors -update -->\n"
	tableEnd     = "<!-- end of test vectors -->\n"
	listedShares = 20 // longer vectors carry a digest of their shares
)

// vectors is the golden file. Its packets have the relevant members of the API's packets.
type vectors struct {
	Stream  streamVector  `json:"stream"`
	Packets []splitVector `json:"packets"`
}

type streamVector struct {
	Seed     string   `json:"seed"`
	PacketID string   `json:"packet_id"`
	Draws    []string `json:"draws"` // 16 hex digits each
}

type splitVector struct {
	Name   string       `json:"name"`
	Packet vectorPacket `json:"packet"`
	Shares []money.Fen  `json:"shares,omitempty"`
	// SharesSHA256 is the hex SHA-256 of the shares in decimal, a line feed after each.
	SharesSHA256 string `json:"shares_sha256"`
}

type vectorPacket struct {
	ID          string         `json:"id"`
	TotalAmount money.Fen      `json:"total_amount"`
	ShareCount  int            `json:"share_count"`
	Split       SplitMode      `json:"split"`
	MinShare    money.Fen      `json:"min_share"`
	MaxShare    *money.Fen     `json:"max_share"`
	Fairness    vectorFairness `json:"fairness"`
}

type vectorFairness struct {
	Algorithm  string `json:"algorithm"`
	Commitment string `json:"commitment"`
	Seed       string `json:"seed"`
}

// vectorSeeds are easy to type: 00 01 02 .. 1f, and 32 times ff.
func vectorSeeds() [2][32]byte {
	var seeds [2][32]byte
	for i := range 32 {
		seeds[0][i], seeds[1][i] = byte(i), 0xff
	}
	return seeds
}

// vectorCases lists, for every mode: a usual packet, one with a floor near the
// mean, one with a cap near the mean (the mirrored window), two shares, the
// largest total, and the largest packet.
func vectorCases() []splitVector {
	cases := []struct {
		name            string
		seed            int
		total, min, max money.Fen
		count           int
	}{
		{"usual", 0, 10_000, 1, 0, 10},
		{"other seed", 1, 10_000, 1, 0, 10},
		{"100 yuan into 8", 0, 10_000, 1, 0, 8},
		{"near the minimum", 0, 507, 99, 0, 5},
		{"near the cap", 0, 5_003, 1, 1_100, 5},
		{"between both", 1, 1_234, 100, 200, 8},
		{"one share", 0, 888, 1, 0, 1},
		{"two shares", 0, 101, 1, 0, 2},
		{"one fen above the minimums", 0, 11, 1, 0, 10},
		{"largest total", 1, money.Max, 1, 0, 3},
		{"many shares", 0, 5_000_000, 1, 0, 5_000},
		{"most shares", 0, money.Max, 1, 0, MaxShares},
	}
	var result []splitVector
	for _, mode := range SplitModes {
		for _, c := range cases {
			v := splitVector{Name: string(mode) + ": " + c.name, Packet: vectorPacket{
				ID: testPacketID, TotalAmount: c.total, ShareCount: c.count, Split: mode, MinShare: c.min,
			}}
			if c.max != 0 {
				v.Packet.MaxShare = &c.max
			}
			seed := vectorSeeds()[c.seed]
			v.Packet.Fairness = vectorFairness{Algorithm: Algorithm, Commitment: Commitment(seed), Seed: hex.EncodeToString(seed[:])}
			result = append(result, v)
		}
	}
	return result
}

func (p vectorPacket) split(t *testing.T) []money.Fen {
	t.Helper()
	seed, err := hex.DecodeString(p.Fairness.Seed)
	if err != nil {
		t.Fatal(err)
	}
	params := SplitParams{PacketID: p.ID, Mode: p.Split, Total: p.TotalAmount, Count: p.ShareCount, Min: p.MinShare}
	if p.MaxShare != nil {
		params.Max = *p.MaxShare
	}
	return mustSplit(t, [32]byte(seed), params)
}

func shareLines(shares []money.Fen) []byte {
	var lines []byte
	for _, share := range shares {
		lines = fmt.Appendf(lines, "%d\n", int64(share))
	}
	return lines
}

// computeVectors runs the code under test.
func computeVectors(t *testing.T) vectors {
	seed := vectorSeeds()[0]
	result := vectors{
		Stream:  streamVector{Seed: hex.EncodeToString(seed[:]), PacketID: testPacketID},
		Packets: vectorCases(),
	}
	s := newStream(seed, testPacketID)
	for range 6 {
		result.Stream.Draws = append(result.Stream.Draws, fmt.Sprintf("%016x", s.draw()))
	}
	for i := range result.Packets {
		v := &result.Packets[i]
		shares := v.Packet.split(t)
		digest := sha256.Sum256(shareLines(shares))
		v.SharesSHA256 = hex.EncodeToString(digest[:])
		if len(shares) <= listedShares {
			v.Shares = shares
		}
	}
	return result
}

// table is the table of the vectors in docs/fairness.md.
func (v vectors) table() string {
	var b strings.Builder
	b.WriteString(tableBegin)
	fmt.Fprintf(&b, "All vectors use the packet id `%s`.\n\n", v.Stream.PacketID)
	names := map[string]string{}
	for i, seed := range vectorSeeds() {
		names[hex.EncodeToString(seed[:])] = string(rune('A' + i))
		fmt.Fprintf(&b, "- seed %c `%x`, commitment `%s`\n", 'A'+i, seed, Commitment(seed))
	}
	fmt.Fprintf(&b, "\nThe first draws of the stream of seed %s: `%s`.\n\n", names[v.Stream.Seed], strings.Join(v.Stream.Draws, "` `"))
	b.WriteString("| split | seed | total | count | min | max | shares, from index 0 |\n|---|---|---|---|---|---|---|\n")
	for _, packet := range v.Packets {
		p, limit, shares := packet.Packet, "null", "SHA-256 `"+packet.SharesSHA256+"`"
		if p.MaxShare != nil {
			limit = fmt.Sprint(int64(*p.MaxShare))
		}
		if len(packet.Shares) > 0 {
			shares = strings.ReplaceAll(strings.TrimSuffix(string(shareLines(packet.Shares)), "\n"), "\n", " ")
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s | %s |\n",
			p.Split, names[p.Fairness.Seed], int64(p.TotalAmount), p.ShareCount, int64(p.MinShare), limit, shares)
	}
	b.WriteString(tableEnd)
	return b.String()
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// between returns the position of the text from begin to the end of end.
func between(t *testing.T, text, begin, end string) (from, to int) {
	t.Helper()
	from = strings.Index(text, begin)
	if from < 0 || strings.Count(text, begin) != 1 {
		t.Fatalf("%s: marker %q is not there exactly once", fairnessDoc, begin)
	}
	length := strings.Index(text[from+len(begin):], end)
	if length < 0 {
		t.Fatalf("%s: nothing ends %q", fairnessDoc, begin)
	}
	return from, from + len(begin) + length + len(end)
}

// TestSplitVectors pins every published share.
func TestSplitVectors(t *testing.T) {
	computed := computeVectors(t)
	if *update {
		text, err := json.MarshalIndent(computed, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(vectorsFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden := goldenVectors(t)
	if !slices.Equal(golden.Stream.Draws, computed.Stream.Draws) {
		t.Errorf("draws %v, want %v", computed.Stream.Draws, golden.Stream.Draws)
	}
	if len(golden.Packets) != len(computed.Packets) {
		t.Fatalf("%d vectors, want %d", len(computed.Packets), len(golden.Packets))
	}
	for i, want := range golden.Packets {
		got, err := json.Marshal(computed.Packets[i])
		if err != nil {
			t.Fatal(err)
		}
		wantText, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, wantText) {
			t.Errorf("%s:\ngot  %s\nwant %s", want.Name, got, wantText)
		}
	}
}

func goldenVectors(t *testing.T) vectors {
	t.Helper()
	var golden vectors
	if err := json.Unmarshal([]byte(readFile(t, vectorsFile)), &golden); err != nil {
		t.Fatal(err)
	}
	return golden
}

// TestSplitVectorsInDoc keeps the table in docs/fairness.md equal to the golden file.
func TestSplitVectorsInDoc(t *testing.T) {
	want, doc := goldenVectors(t).table(), readFile(t, fairnessDoc)
	from, to := between(t, doc, tableBegin, tableEnd)
	if *update {
		doc = doc[:from] + want + doc[to:]
		if err := os.WriteFile(fairnessDoc, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if doc[from:to] != want {
		t.Errorf("the table in %s is not the one of %s; run go test ./packet -run Vectors -update", fairnessDoc, vectorsFile)
	}
	if !strings.Contains(doc, "`"+Algorithm+"`") {
		t.Errorf("%s does not name the algorithm %s", fairnessDoc, Algorithm)
	}
}

// TestSplitVectorsByVerifier runs the verifier printed in docs/fairness.md, in another language and
// with another method, on the golden vectors.
func TestSplitVectorsByVerifier(t *testing.T) {
	t.Parallel() // most of the time is spent starting Python
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	doc := readFile(t, fairnessDoc)
	from, to := between(t, doc, "```python\n", "```\n")
	script := strings.TrimSuffix(strings.TrimPrefix(doc[from:to], "```python\n"), "```\n")
	run := func(p vectorPacket) (string, error) {
		input, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), python, "-c", script)
		command.Stdin = bytes.NewReader(input)
		output, err := command.Output()
		return string(output), err
	}
	golden := goldenVectors(t)
	for _, v := range golden.Packets {
		if v.Packet.ShareCount > 10_000 {
			continue // correct too, but it takes ten seconds
		}
		output, err := run(v.Packet)
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		digest := sha256.Sum256([]byte(output))
		if hex.EncodeToString(digest[:]) != v.SharesSHA256 {
			t.Errorf("%s: the verifier says\n%.300s", v.Name, output)
		}
	}
	forged := golden.Packets[0].Packet
	forged.Fairness.Seed = strings.Repeat("ab", 32)
	if output, err := run(forged); err == nil {
		t.Errorf("the verifier accepted an exchanged seed: %s", output)
	}
}
