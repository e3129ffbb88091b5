/** Characters of one text in a fault or an error: what a service throws may be megabytes, and it travels to every reader and is stored. */
export const MAX_FAULT_TEXT = 65_536

/** The text, or its beginning with a note of how long it was. */
export function cutText (text: string, most: number = MAX_FAULT_TEXT): string {
  if (text.length <= most) return text
  // Half a surrogate pair is no character of XML.
  const end = /[\ud800-\udbff]$/.test(text.slice(0, most)) ? most - 1 : most
  return `${text.slice(0, end)}… [cut: ${text.length} characters, the limit is ${most}]`
}

/** Output of a program without the sequences that colour it or move a cursor. */
// eslint-disable-next-line no-control-regex
export const readableText = (text: string): string => text.replace(/\u001b\[[0-?]*[ -/]*[@-~]/g, '').replace(/\r(?!\n)/g, '\n')
