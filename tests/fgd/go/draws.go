// Prints the random numbers that the simulator draws from one seed: the order of the pods, the pods that are added to
// reach the load, and the numbers before the nodes' names.
//
// Reads: seed, the thousandths of GPUs to reach, the number of nodes, the number of pods; then for each pod the
// thousandths of one of its GPUs, and of all of them.
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
)

// Pods, nodes, CSINodes, volumes, claims, services, replication controllers, replica sets, stateful sets, budgets.
const informers = 10

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var seed, target, total int64
	var nodes, pods int
	fmt.Fscan(in, &seed, &target, &nodes, &pods)
	one, all, order := make([]int64, pods), make([]int64, pods), make([]int, pods)
	for i := range order {
		fmt.Fscan(in, &one[i], &all[i])
		order[i] = i
		total += all[i]
	}
	random := rand.New(rand.NewSource(seed))
	random.Int()
	random.Shuffle(pods, func(i, j int) { order[i], order[j] = order[j], order[i] })
	for {
		pod := random.Intn(pods)
		if total+one[pod] > target {
			break
		}
		total += all[pod]
		order = append(order, pod)
	}
	fmt.Fprintln(out, len(order))
	for _, pod := range order {
		fmt.Fprintln(out, pod)
	}
	// Each of the simulator's informers draws how long its watch lasts, before the nodes are numbered.
	for range informers {
		random.Float64()
	}
	for _, number := range random.Perm(nodes) {
		fmt.Fprintln(out, number)
	}
}
