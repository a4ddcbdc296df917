// Runs before the page's content is loaded, so that the style hides content for browsers without scripts. Laying out a list
// of many stats while it loads, only to replace it by a table, would keep the browser busy for minutes.

if ('noModule' in HTMLScriptElement.prototype) document.documentElement.classList.add('scripted');
