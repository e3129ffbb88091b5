/** Characters of one text in a fault or an error: what a service throws may be megabytes, and it travels to every reader and is stored. */
export const MAX_FAULT_TEXT = 65_536

/** The text, or its beginning with a note of how long it was. */
export function cutText (text: string, most: number = MAX_FAULT_TEXT): string {
  if (text.length <= most) return text
  // Half a surrogate pair is no character of XML.
  const end = /[\ud800-\udbff]$/.test(text.slice(0, most)) ? most - 1 : most
  return `${text.slice(0, end)}… [cut: ${text.length} characters, the limit is ${most}]`
}
