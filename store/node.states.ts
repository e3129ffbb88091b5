/** What the store knows of a node that its state is told by. */
export interface NodeFacts {
  /** It was declared dead. */
  readonly isDead: boolean
  /** An operator has drained it, or its manager is going. */
  readonly isDraining: boolean
  /** Its manager is going, and ends its tasks itself. */
  readonly isLeaving: boolean
  readonly tasks: { readonly length: number }
}

/** States of a node as people, REST and metrics see it, in the order in which they are tried: the first that fits is the node's. */
export const NODE_STATES = {
  Offline: { says: 'no heartbeat', when: 'it was not heard of for its lease, and was declared dead; shown for an hour', fits: ({ isDead }) => isDead },
  Drained: { says: 'takes no new ones, and none is left', when: 'an operator has drained it, and its last task has ended', fits: ({ isDraining, isLeaving, tasks }) => isDraining && !isLeaving && tasks.length === 0 },
  Draining: { says: 'takes no new ones, those there finish', when: 'an operator has drained it, or its manager is ending', fits: ({ isDraining }) => isDraining },
  Online: { says: 'takes tasks', when: 'any other', fits: () => true }
} as const satisfies Readonly<Record<string, { says: string, when: string, fits: (facts: NodeFacts) => boolean }>>

export type NodeState = keyof typeof NODE_STATES

export const nodeState = (facts: NodeFacts): NodeState => (Object.keys(NODE_STATES) as NodeState[]).find(state => NODE_STATES[state].fits(facts)) ?? 'Online'
