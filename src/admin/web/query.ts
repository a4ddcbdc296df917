// Builds queries as the server parses them: '+' is a plus sign, and a space is '%20'. Browsers and URLSearchParams write a
// space as '+'.

export function queryText(parameters: Iterable<readonly [name: string, value: string]>): string {
  return Array.from(parameters, ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join(
    '&',
  );
}

/** Makes forms with method 'get' send spaces as '%20', unless the page handles them otherwise. */
export function encodeSpaces(): void {
  document.addEventListener('submit', (event) => {
    const { target: form } = event;
    if (event.defaultPrevented || !(form instanceof HTMLFormElement) || form.getAttribute('method') !== 'get') return;
    const parameters = Array.from(new FormData(form), ([name, value]) => [name, String(value)] as const);
    if (!parameters.some(([, value]) => value.includes(' '))) return;
    event.preventDefault();
    location.assign(`${form.getAttribute('action')}?${queryText(parameters)}`);
  });
}
