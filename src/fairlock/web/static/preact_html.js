// htm bound to preact: the only place that names the vendored files.
import htm from "./vendor/htm.js";
import { Component, h, render } from "./vendor/preact.js";

export { Component, render };
export { useEffect, useLayoutEffect, useRef, useState } from "./vendor/hooks.js";
export const html = htm.bind(h);

// A component that is drawn again only if one of these properties is another value.
export function memo(draw, ...names) {
  return class extends Component {
    shouldComponentUpdate(next) {
      for (const name of names) if (next[name] !== this.props[name]) return true;
      return false;
    }
    render(props) {
      return draw(props);
    }
  };
}
