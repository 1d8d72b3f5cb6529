// What Kubernetes' own library makes of quantities: a JSON text a line in, an answer a line out.
//
// The answer is null for what it refuses, else [unscaled, scale, value, milli]: the number is unscaled * 10^scale, value
// and milli are what the scheduler counts of it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Fprintln(out, answer(text))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer(text string) string {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return "null"
	}
	value, milli := quantity.Value(), quantity.MilliValue()
	number := quantity.AsDec()
	return fmt.Sprintf("[%q,%d,%q,%q]", number.UnscaledBig().String(), -number.Scale(), fmt.Sprint(value), fmt.Sprint(milli))
}
