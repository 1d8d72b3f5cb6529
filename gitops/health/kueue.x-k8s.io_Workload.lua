-- What Kueue queues: waiting, admitted, finished.
local hs = {status = "Progressing", message = "Waiting for quota"}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    -- A condition that was true once stays in the list as false: only those that hold count.
    if condition.status == "True" then
      local said = condition.message
      if said == nil or said == "" then
        said = condition.reason or condition.type
      end
      if condition.type == "Finished" then
        if condition.reason == "Failed" then
          return {status = "Degraded", message = said}
        end
        return {status = "Healthy", message = said}
      elseif condition.type == "Evicted" or condition.type == "Preempted" then
        hs = {status = "Suspended", message = said}
      elseif condition.type == "Admitted" and hs.status ~= "Suspended" then
        hs = {status = "Progressing", message = said}
      end
    end
  end
end
if hs.message == "Waiting for quota" and obj.spec ~= nil and obj.spec.active == false then
  hs = {status = "Suspended", message = "Deactivated"}
end
return hs
