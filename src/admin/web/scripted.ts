// Runs before the page's content is there, and lets the style hide what is only for browsers without scripts. A list of many
// stats that is laid out while it arrives, only to give way to a table, would keep the browser busy for minutes.

if ('noModule' in HTMLScriptElement.prototype) document.documentElement.classList.add('scripted');
