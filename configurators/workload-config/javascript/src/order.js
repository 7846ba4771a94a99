/** The order of texts by their code points, as UTF-8 has it. That of JavaScript is by halves of surrogate pairs. */
export function byText(a, b) {
  for (let i = 0; ; ) {
    const [left, right] = [a.codePointAt(i), b.codePointAt(i)];
    if (left === undefined || right === undefined) {
      return a.length - b.length;
    }
    if (left !== right) {
      return left - right;
    }
    i += left > 0xffff ? 2 : 1;
  }
}
