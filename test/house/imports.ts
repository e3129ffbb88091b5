import { readFileSync, readdirSync } from 'node:fs'
import { join, relative, resolve, dirname } from 'node:path'
import ts from 'typescript'
import { packageRoot } from '../../core/assets.ts'

/** Layers from the bottom, as design.md draws them. A folder imports from its own room and from layers below; rooms of one layer do not import each other. */
const LAYERS: ReadonlyArray<readonly string[]> = [
  ['core'],
  ['wire'],
  ['wsdl', 'config'],
  ['transport', 'store'],
  ['broker', 'broker/head', 'broker/worker', 'node-manager', 'service-host', 'client', 'web'],
  ['cli'],
  ['examples'],
  ['bench', 'test']
]

/** Rooms of one layer meet here, and here only. */
const MEETING_PLACES = ['broker/contract.ts', 'broker/view.ts']

export interface Import { readonly from: string, readonly to: string }

/** A file's room: the deepest folder that a layer names. */
export function roomOf (path: string): string | undefined {
  return LAYERS.flat().filter(room => path.startsWith(`${room}/`)).sort((a, b) => b.length - a.length)[0]
}
const rankOf = (room: string): number => LAYERS.findIndex(layer => layer.includes(room))

/** What is wrong with an import, or undefined. */
export function wrongWith ({ from, to }: Import): string | undefined {
  const [here, there] = [roomOf(from), roomOf(to)]
  if (here === undefined || there === undefined) return `${here === undefined ? from : to} is in no layer`
  if (here === there) return undefined
  // A bench may use what the tests start: a Redis of its own, a grid.
  if (there === 'bench' || (there === 'test' && here !== 'bench')) return `${here} imports ${there}`
  // Examples stand where a user stands: they see what is exported, which lies in rooms. Nobody sees them but tests and benches.
  if (there === 'examples') return here === 'test' || here === 'bench' ? undefined : `${here} imports examples`
  if (rankOf(there) < rankOf(here) || here === 'test' || here === 'bench') return undefined
  if (MEETING_PLACES.includes(to) || here.startsWith(`${there}/`)) return undefined // broker/head and broker/worker share what lies in broker/ itself
  return rankOf(there) > rankOf(here) ? `${here} imports ${there}, which lies above it` : `${here} imports ${there}, another room of its layer`
}

/** Every TypeScript file below the layers' folders, relative to the repository. */
export function sources (): string[] {
  const folders = [...new Set(LAYERS.flat().map(room => room.split('/')[0] ?? ''))]
  return folders.flatMap(folder => {
    try {
      return readdirSync(join(packageRoot, folder), { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
        .map(entry => relative(packageRoot, join(entry.parentPath, entry.name)))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [] // a layer that has no code yet
      throw error
    }
  })
}

/** Imports of one file that lead to another file of the repository: static, re-exports, types and `import(…)`. `isLazy`: dynamic imports too. */
export function importsOf (path: string, text: string, { isLazy = true } = {}): Import[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined && ts.isStringLiteral(node.moduleSpecifier)) found.push(node.moduleSpecifier.text)
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument) && ts.isStringLiteral(node.argument.literal)) found.push(node.argument.literal.text)
    if (isLazy && ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const argument = node.arguments[0]
      if (argument !== undefined && ts.isStringLiteral(argument)) found.push(argument.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest))
  return found.filter(name => name.startsWith('.')).map(name => ({ from: path, to: relative(packageRoot, resolve(packageRoot, dirname(path), name)) }))
}

export const readImports = (path: string): Import[] => importsOf(path, readFileSync(join(packageRoot, path), 'utf8'))

/** One cycle for each knot of files, as the path round it; empty: there is none. */
export function cycles (imports: readonly Import[]): string[][] {
  const next = new Map<string, string[]>()
  for (const { from, to } of imports) next.set(from, [...next.get(from) ?? [], to])
  const done = new Set<string>()
  const found: string[][] = []
  const walk = (file: string, path: string[]): void => {
    const at = path.indexOf(file)
    if (at !== -1) { found.push([...path.slice(at), file]); return }
    if (done.has(file)) return
    for (const to of next.get(file) ?? []) walk(to, [...path, file])
    done.add(file)
  }
  for (const file of next.keys()) walk(file, [])
  return found
}
