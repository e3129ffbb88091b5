import { InvalidArgumentError } from 'commander'

/** commander's parser for counts. */
export function wholeNumber (text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('a whole number is expected.')
  return Number(text)
}
