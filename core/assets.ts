import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder that has package.json: files that are not code (Lua, WSDL, samples) are found from here, whether the code runs from dist/ or elsewhere below it. */
export const packageRoot: string = (() => {
  for (let dir = dirname(fileURLToPath(import.meta.url)); ; dir = dirname(dir)) {
    if (existsSync(join(dir, 'package.json'))) return dir
    if (dirname(dir) === dir) throw new Error('package.json of soa-broker not found above this file')
  }
})()

/** Absolute path of a file of the package, e.g. `asset('store/lua/append.lua')`. */
export const asset = (path: string): string => join(packageRoot, path)
