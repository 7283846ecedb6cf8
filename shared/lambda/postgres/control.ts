/**
 * What in a statement begins or ends a transaction, by its first words; undefined where nothing does. `ROLLBACK TO` a
 * savepoint is the application's own affair.
 */
export function controlOf(text: string): string | undefined {
  const words = new Words(text);
  const first = words.first();
  switch (first) {
    case 'begin':
    case 'commit':
    case 'end':
    case 'abort':
      return first;
    case 'start':
    case 'prepare':
      return words.next() === 'transaction' ? `${first} transaction` : undefined;
    case 'rollback': {
      const second = words.next();
      const target = second === 'work' || second === 'transaction' ? words.next() : second;
      return target === 'to' ? undefined : first;
    }
    default:
      return undefined;
  }
}

// PostgreSQL's own white space: anything else is a part of a name, or an error.
const BLANK = /[ \t\n\r\f\v]/;
const WORD = /[a-z_\u0080-\uffff][\w$\u0080-\uffff]*/iy;
const LINE_END = /[\n\r]/g;

/** Reads words with comments between them. Each character is looked at once, however many comments there are. */
class Words {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The first word, after any empty statements. */
  first(): string {
    this.#skipBlanks();
    while (this.#text[this.#at] === ';') {
      this.#at += 1;
      this.#skipBlanks();
    }
    return this.next();
  }

  /** The next word in small letters; empty where something else follows. */
  next(): string {
    this.#skipBlanks();
    WORD.lastIndex = this.#at;
    const word = WORD.exec(this.#text)?.[0] ?? '';
    this.#at += word.length;
    return word.toLowerCase();
  }

  #skipBlanks(): void {
    for (;;) {
      if (BLANK.test(this.#text[this.#at] ?? '')) this.#at += 1;
      else if (this.#text.startsWith('--', this.#at)) this.#skipLine();
      else if (this.#text.startsWith('/*', this.#at)) this.#skipComment();
      else return;
    }
  }

  #skipLine(): void {
    LINE_END.lastIndex = this.#at;
    this.#at = LINE_END.exec(this.#text)?.index ?? this.#text.length;
  }

  /** Comments nest in PostgreSQL. */
  #skipComment(): void {
    let depth = 0;
    do {
      if (this.#text.startsWith('/*', this.#at)) depth += 1;
      else if (this.#text.startsWith('*/', this.#at)) depth -= 1;
      else {
        this.#at += 1;
        continue;
      }
      this.#at += 2;
    } while (depth > 0 && this.#at < this.#text.length);
  }
}
