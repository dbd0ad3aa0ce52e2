// JSON as text: read member by member and indented without being parsed, so that what
// was sent is what is seen, to the last digit.

function endOf(text, start) {
  const first = text[start];
  if (first === '"') {
    for (let i = start + 1; i < text.length; i++) {
      if (text[i] === "\\") i++;
      else if (text[i] === '"') return i + 1;
    }
    return text.length;
  }
  if (first === "{" || first === "[") {
    let depth = 0;
    for (let i = start; i < text.length; i++) {
      if (text[i] === '"') i = endOf(text, i) - 1;
      else if (text[i] === "{" || text[i] === "[") depth++;
      else if (text[i] === "}" || text[i] === "]") {
        depth--;
        if (depth === 0) return i + 1;
      }
    }
    return text.length;
  }
  let i = start;
  while (i < text.length && !",]} \n\r\t".includes(text[i])) i++;
  return i;
}

function skip(text, start) {
  let i = start;
  while (i < text.length && " \n\r\t".includes(text[i])) i++;
  return i;
}

// The text of one member of an object, or null.
export function member(text, name) {
  let i = skip(text, skip(text, 0) + 1);
  while (i < text.length && text[i] === '"') {
    const end = endOf(text, i);
    const key = JSON.parse(text.slice(i, end));
    const begin = skip(text, skip(text, end) + 1);
    const over = endOf(text, begin);
    if (key === name) return text.slice(begin, over);
    i = skip(text, over);
    if (text[i] !== ",") break;
    i = skip(text, i + 1);
  }
  return null;
}

export function pretty(text) {
  const parts = [];
  let depth = 0;
  const line = () => parts.push("\n", "  ".repeat(depth));
  for (let i = skip(text, 0); i < text.length; i = skip(text, i)) {
    const char = text[i];
    if (char === "{" || char === "[") {
      const next = skip(text, i + 1);
      if (text[next] === "}" || text[next] === "]") {
        parts.push(char, text[next]);
        i = next + 1;
        continue;
      }
      depth++;
      parts.push(char);
      line();
      i++;
    } else if (char === "}" || char === "]") {
      depth--;
      line();
      parts.push(char);
      i++;
    } else if (char === ",") {
      parts.push(char);
      line();
      i++;
    } else if (char === ":") {
      parts.push(": ");
      i++;
    } else {
      const end = Math.max(i + 1, endOf(text, i));
      parts.push(text.slice(i, end));
      i = end;
    }
  }
  return parts.join("");
}
