// Three namespaces with the same local names: the parameters come back in the other order.
export default { Mix: ({ item, other, third }) => ({ MixResult: third, left: other, right: item }) }
