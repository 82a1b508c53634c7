// The console in Chromium against a running `earshot dev --demo`, nothing mocked: the whole way of each person that it
// is for, what stands in their way, every page, and what it costs. In this order, by one service and one browser.
import "./context.mjs";
import "./customer.mjs";
import "./receiver.mjs";
import "./access.mjs";
import "./sign-in.mjs";
import "./failing.mjs";
import "./hostile.mjs";
import "./pages.mjs";
import "./budgets.mjs";
