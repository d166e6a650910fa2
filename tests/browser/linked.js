// Everything that follows the operating point.
const get = (q, a) => document.querySelector(q).getAttribute(a);
return {
  risk: get("[data-picture=risk] .point", "transform"), threshold: get("[data-picture=threshold] .point", "transform"),
  reliability: get("[data-picture^=reliability] .deferred", "width"), corp: get("[data-picture=corp] .deferred", "width"), histogram: get("[data-picture=histogram] .deferred", "width"),
  numbers: [...document.querySelectorAll(".numbers dd")].map((e) => e.textContent).join(),
  story: document.querySelector(".story").textContent, said: get("#operating", "aria-valuetext"),
  classes: [...document.querySelectorAll("[data-class] progress")].map((e) => e.value).join() };
