import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { InvalidArgumentError, type Command } from 'commander'
import { didYouMean, nearNames } from '../../core/near-names.ts'
import { CommandFailed, EXIT } from '../exit-codes.ts'
import { print, type Io } from '../io.ts'
import type { Form } from '../wire-decode.ts'

const FORMS = ['conversation', 'payload', 'nbfx', 'http', 'xml']
const oneOf = (...known: string[]) => (value: string): string => {
  if (!known.includes(value)) throw new InvalidArgumentError(`Known are: ${known.join(', ')}.`)
  return value
}
/** Captures are looked at by people; larger ones are a mistake in the name of the file. */
const MOST_BYTES = 256 * 1024 * 1024

export function wireCommands (program: Command, io: Io): void {
  const wire = program.command('wire').description('look at what goes over the wire')
  wire.command('decode <file>').description('print the records and XML of a capture: net.tcp (one side of a connection, or any records of one), binary XML, or an HTTP message')
    .option('--from <form>', 'hex (digits and blanks) or binary; default: hex when the file has nothing else', oneOf('hex', 'binary'))
    .option('--as <form>', `what the bytes are: ${FORMS.join(', ')}; default: what the first ones look like`, oneOf(...FORMS))
    .option('--records', 'the records of binary XML too, each with its offset')
    .option('--json', 'one JSON document')
    .addHelpText('after', `
Examples:
  soa wire decode client-side.bin
  soa wire decode envelope.hex --as payload --records

The two sides of a connection are two files, as tcpflow writes them.

Exit codes: 0 all was read, 1 something in it is wrong (what could be read is printed), 2 not what the options say,
4 no such file.`)
    .action(async (file: string, options: { from?: 'hex' | 'binary', as?: Form, records?: boolean, json?: boolean }) => {
      const { bytesOfFile, decodeWire, guessForm, linesOf } = await import('../wire-decode.ts')
      const content = await readFile(file).catch((error: NodeJS.ErrnoException) => { if (error.code !== 'ENOENT') throw error; throw new CommandFailed(EXIT.notFound, `${file} does not exist${didYouMean(neighbours(file))}`) })
      if (content.length > MOST_BYTES) throw new CommandFailed(EXIT.refused, `${file} has ${content.length} bytes, the limit is ${MOST_BYTES}`)
      const bytes = bytesOfFile(content, options.from, file)
      if (bytes.length === 0) throw new CommandFailed(EXIT.usage, `${file} is empty`)
      const form = options.as ?? guessForm(bytes)
      const items = decodeWire(bytes, form, options.records === true)
      print(io, options.json, { form, bytes: bytes.length, items }, () => items.flatMap(linesOf))
      const wrong = items.find(item => item.error !== undefined)
      if (wrong !== undefined) throw new CommandFailed(EXIT.failed, options.json ? '' : `${file}: ${wrong.record}${wrong.record === 'order' ? ' of records' : ` at byte ${wrong.at}`}: ${wrong.error ?? ''}`)
    })
}

/** Files beside it with names like its own. */
function neighbours (file: string): string[] {
  try {
    const names = readdirSync(dirname(file), { withFileTypes: true }).filter(entry => !entry.isDirectory()).map(({ name }) => name)
    return nearNames(basename(file), names).map(name => dirname(file) === '.' && !file.startsWith('.') ? name : join(dirname(file), name))
  } catch { return [] } // its folder is not there either
}
