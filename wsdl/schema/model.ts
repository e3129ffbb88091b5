/** A schema as the reader and the writer use it: references resolved, bases and groups spread out. Built by `schema.ts`. */
import type { QName } from '../../wire/soap/envelope.ts'
import type { Prefixes, Primitive } from './primitives.ts'

export interface SimpleType {
  readonly kind: 'simple'
  /** Undefined for a type without a name. */
  readonly name: QName | undefined
  readonly base: SimpleType | undefined
  readonly whiteSpace: Primitive['whiteSpace']
  /** Whitespace, form and facets checked; throws Mismatch. A list is an array. */
  parse (text: string, prefixes: Prefixes): unknown
  format (value: unknown, qname: (name: QName) => string): string
  /** Of a list: what its items are. */
  readonly item?: SimpleType
  /** Of a union. */
  readonly members?: readonly SimpleType[]
  /** Of an enumeration: the texts that the schema lists. */
  readonly words?: readonly string[]
}

export interface AttributeUse {
  readonly uri: string
  readonly local: string
  /** Its key under `$attributes`: the local name, or `{ns}local` where that is taken. */
  readonly key: string
  readonly type: SimpleType
  readonly isRequired: boolean
  /** Supplied when absent. */
  readonly default: string | undefined
  /** The only value allowed. */
  readonly fixed: string | undefined
}

export interface ElementDecl {
  readonly uri: string
  readonly local: string
  readonly name: QName
  type: Type
  readonly isNillable: boolean
  readonly isAbstract: boolean
  readonly default: string | undefined
  readonly fixed: string | undefined
}

export interface ElementParticle { readonly kind: 'element', readonly element: ElementDecl, readonly min: number, readonly max: number }
/** An xs:any. What it matches is kept as text, in `$xml`; unless it says processContents="skip", elements that the contract knows are checked. */
export interface AnyParticle { readonly kind: 'any', readonly min: number, readonly max: number, readonly isChecked: boolean, readonly allows: (uri: string) => boolean }
export interface GroupParticle { readonly kind: 'sequence' | 'choice' | 'all', readonly items: readonly Particle[], readonly min: number, readonly max: number }
export type Leaf = ElementParticle | AnyParticle
export type Particle = Leaf | GroupParticle

export interface ComplexType {
  readonly kind: 'complex'
  readonly name: QName | undefined
  base: Type | undefined
  readonly isAbstract: boolean
  /** Text between elements, or xs:anyType: the inside is kept as text, in `$xml`. */
  isMixed: boolean
  isAny: boolean
  /** Text and attributes: `{ $value, $attributes }`. */
  simple: SimpleType | undefined
  /** The whole content, the bases' first. Undefined: empty. */
  content: Particle | undefined
  attributes: readonly AttributeUse[]
  /** Namespaces whose attributes are let through as text; undefined: none. */
  anyAttribute: ((uri: string) => boolean) | undefined
  /** Made from content when first needed. */
  model?: ContentModel
}

export type Type = SimpleType | ComplexType

// What content.ts makes of a complex type, kept with the type.

export interface Member {
  /** Key in the value: the local name; `{ns}local` for a second element of the same local name. Wildcards: `$xml`. */
  readonly key: string
  /** May occur more than once: the value is an array. */
  readonly isArray: boolean
}

export interface Position {
  /** Undefined: the start. */
  readonly leaf: Leaf | undefined
  /** Undefined: a wildcard. */
  readonly element: ElementDecl | undefined
  /** Of a wildcard: elements that the contract knows are checked. */
  readonly isChecked: boolean
  readonly member: Member
  readonly min: number
  readonly max: number
  /** What may follow, by local name; an element with maxOccurs above 1 follows itself. */
  readonly next: Map<string, Edge[]>
  readonly wild: Array<{ readonly any: AnyParticle, readonly to: Position }>
  canEnd: boolean
  /** A group around it repeats, so it may follow itself as a new occurrence. */
  restarts: boolean
}

export interface Edge { readonly uri: string, readonly to: Position }

export interface ContentModel {
  /** Keys by particle: the writer walks the particles. */
  readonly members: ReadonlyMap<Leaf, Member>
  readonly keys: ReadonlySet<string>
  /** Of all elements that may stand somewhere in it. */
  readonly names: ReadonlySet<QName>
  /** No position yet: where reading begins. */
  readonly start: Position
  /** For xs:all: every element at most once, in any order. */
  readonly all: ReadonlyMap<string, Position> | undefined
  /** Each key belongs to one particle and no group repeats: the order is the schema's, and nothing comes in several places. */
  readonly isPlain: boolean
  /** Namespaces of the elements directly inside: declared once on the parent. */
  readonly namespaces: readonly string[]
}

export const UNBOUNDED = Infinity

/** Whether `type` is `base` or derived from it; everything derives from xs:anyType. */
export function derives (type: Type, base: Type): boolean {
  if (base.kind === 'complex' && base.isAny) return true
  for (let t: Type | undefined = type; t; t = t.base) {
    // Builtins and global types are one object each, but a type read twice (an include reached by two ways) is not.
    if (t === base || (t.name !== undefined && t.name === base.name)) return true
  }
  return false
}
