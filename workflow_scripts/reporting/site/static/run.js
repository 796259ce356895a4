// Light or dark as the browser asks; on the site this is a part of the theme.
{
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
  follow();
  dark.addEventListener("change", follow);
}
