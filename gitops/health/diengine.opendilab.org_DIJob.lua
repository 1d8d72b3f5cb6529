-- DIJob of DI-orchestrator, v1alpha1 and v2alpha1. Why it is in a phase stands in the condition of that name.
local meanings = {
  Succeeded = "Healthy",
  Failed = "Degraded",
  Unknown = "Unknown",
}
local phase = ""
local why = ""
if obj.status ~= nil then
  phase = obj.status.phase or ""
  for _, condition in ipairs(obj.status.conditions or {}) do
    if condition.type == phase and condition.status == "True" and condition.message ~= nil then
      why = condition.message
    end
  end
end
local status = meanings[phase] or "Progressing"
if phase == "" then
  phase = "Not started"
end
local message = phase
if why ~= "" then
  message = phase .. ": " .. why
end
return {status = status, message = message}
